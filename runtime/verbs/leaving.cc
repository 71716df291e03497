// SPDX-License-Identifier: BSD-3-Clause
// How a rank leaves.
#include <chrono>
#include <memory>
#include <new>
#include <thread>

#include "runtime/base/log.h"
#include "runtime/verbs/transport.h"

namespace ibcoll::verbs {
namespace {

constexpr Time kGoodbyeTimeout = 3'000 * kMillisecond;

}  // namespace

// What was accepted is delivered before this rank leaves, and its peers are notified, so that they do not report it as
// dead. A connection that breaks meanwhile is made anew. A shortage of memory delays all that, and nothing else.
void Transport::say_goodbye() noexcept {
  const auto is_done = [](const Peer& peer) {
    return peer.connection.is(State::kFailed) || peer.liveness.lost() || peer.is_leaving();
  };
  const auto is_notified = [&](Peer& peer) {  // or need not be
    const Connection& connection = peer.connection;
    if (peer.sent_goodbye || is_done(peer)) return true;
    if (connection.is(State::kNew) && !peer.sending.has_unconsumed()) return true;
    if (connection.is(State::kGreeting) && peer.sending.accepted() == 0) return true;
    if (!connection.ready() || !peer.sending.has_slot()) return false;
    sender_.send_own(peer, SlotKind::kLeaving, {});
    return peer.sent_goodbye = true;
  };
  const auto has_all = [&](const Peer& peer) {
    if (is_done(peer)) return true;
    if (!peer.connection.ready()) return !peer.sending.has_unconsumed();
    // Credit that leaves after a new connection reports no completion.
    return !peer.sending.has_unposted() &&
           (peer.sending.queue.drained() || peer.connection.remote.delivered >= peer.sending.accepted());
  };
  connector_.leave();
  const Time deadline = now() + kGoodbyeTimeout;
  do {
    bool left = true;
    try {
      for (const std::unique_ptr<Peer>& peer : local_.peers.all()) {
        if (!peer || !peer->channel.made()) continue;
        const bool notified = is_notified(*peer);
        left = left && notified && has_all(*peer);
      }
      if (left) return;
      if (completions_.poll() == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
      monitor_.check();
      connector_.serve_greetings();
      resume_sending();
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  } while (now() < deadline);
  log(LogLevel::kInfo, "verbs: rank {}: left without an answer of all peers", local_.rank);
}

}  // namespace ibcoll::verbs
