// SPDX-License-Identifier: BSD-3-Clause
// How a rank leaves.
#include <algorithm>
#include <chrono>
#include <thread>

#include "runtime/base/log.h"
#include "runtime/verbs/transport.h"

namespace ibcoll::verbs {
namespace {

constexpr Time kGoodbyeTimeout = 3'000 * kMillisecond;

}  // namespace

// What was accepted is delivered before this rank leaves, and its peers are notified, so that they do not report it as
// dead.
void Transport::say_goodbye() {
  connector_.leave();
  std::vector<Peer*> pending;
  for (const std::unique_ptr<Peer>& peer : local_.peers.all())
    if (peer && !peer->connection.is(State::kFailed) && peer->channel.made()) pending.push_back(peer.get());
  const Time deadline = now() + kGoodbyeTimeout;
  const auto done = [this](Peer* peer) {
    const Connection& connection = peer->connection;
    if (connection.is(State::kFailed) || peer->is_leaving()) return true;
    if (connection.is(State::kNew) && !peer->sending.has_unconsumed()) return true;
    if (connection.is(State::kGreeting) && peer->sending.accepted() == 0) return true;
    if (!connection.ready() || !peer->sending.has_slot()) return false;
    sender_.send_own(*peer, SlotKind::kLeaving, {});
    return true;
  };
  const auto everything_left = [this] {
    return std::all_of(local_.peers.all().begin(), local_.peers.all().end(), [](const std::unique_ptr<Peer>& peer) {
      return !peer || !peer->connection.ready() || peer->is_leaving() ||
             (!peer->sending.has_unposted() && peer->sending.queue.drained());
    });
  };
  while (now() < deadline) {
    std::erase_if(pending, done);
    if (pending.empty() && everything_left()) return;
    if (completions_.poll() == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
    connector_.connect_drained();
    connector_.serve_greetings();
    sender_.retry_pumps();
  }
  log(LogLevel::kInfo, "verbs: rank {}: left without an answer of all peers", local_.rank);
}

}  // namespace ibcoll::verbs
