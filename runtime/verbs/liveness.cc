// SPDX-License-Identifier: BSD-3-Clause
// Signs of life: of the devices of peers, of greetings that are to be answered, and of the port of this rank.
#include "runtime/verbs/liveness.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/verbs/transport.h"

namespace ibcoll::verbs {
namespace {

constexpr Time kBetweenLooks = 50 * kMillisecond;  // at the port
constexpr uint32_t kFewestLooks = 10;
constexpr std::string_view kNoAnswer =
    "it does not answer any more (transport retry counter exceeded); has its process ended, or its link?";
constexpr Time kBusyFactor = 2;  // a peer that computes answers after so many times of what a device tries

}  // namespace

Time Transport::time_to_answer() const { return kBusyFactor * patience() + 2 * connections_->delay_of_loss(); }

// Greetings may go unanswered because the peer computes: not when they cannot even leave, nor after a device has given
// up, when there is a time to answer.
void Transport::check_greeted(Time time) {
  for (Peer* peer : std::vector(greeted_)) {
    if (peer->liveness.is_overdue(time))
      fail(*peer, port_state_ != IBV_PORT_ACTIVE ? port_failure() : std::string(kNoAnswer));
    else if (!peer->liveness.has_deadline() && port_stays_down())
      fail(*peer, port_failure());
  }
}

// While somebody does not answer. Links come back: only one that is down for as long as a device tries is a reason to
// give a peer up. Of the time between two looks a part counts, as a program that computes looks seldom.
void Transport::look_at_port(Time time) {
  const auto asked = [](const Peer* peer) { return peer->liveness.is_asked(); };
  if (greeted_.empty() && std::none_of(active_.begin(), active_.end(), asked)) {
    port_state_ = IBV_PORT_ACTIVE;
    return;
  }
  if (time - port_looked_at_ < kBetweenLooks) return;
  const Time since = time - std::exchange(port_looked_at_, time);
  const bool was_down = port_state_ != IBV_PORT_ACTIVE;
  ibv_port_attr port{};
  port_error_ = ibv_query_port(device_.get(), route_.port, &port);
  port_state_ = port_error_ == 0 ? port.state : IBV_PORT_NOP;
  port_down_for_ = was_down ? port_down_for_ + std::min(since, patience() / kFewestLooks) : 0;
}

bool Transport::port_stays_down() const { return port_state_ != IBV_PORT_ACTIVE && port_down_for_ > patience(); }

std::string Transport::port_failure() const {
  if (port_error_ != 0)
    return fmt::format("the port {}:{} cannot be asked for its state: {}; is the device still there? (dmesg)", device(),
                       route_.port, std::strerror(port_error_));
  return fmt::format("the port {}:{} is {}; check the cable, the subnet manager or `ip link`", device(), route_.port,
                     ibv_port_state_str(port_state_));
}

// A device answers for its process, also while that computes; the process's end shows as a missing answer.
void Transport::check_peers() {
  take_completions();  // its last words
  for (const int rank : processes_.ended()) fail(*peers_[static_cast<size_t>(rank)], "its process has ended");
  const Time time = now();
  look_at_port(time);
  check_greeted(time);
  for (size_t i = 0; i < active_.size(); ++i) check_silence(*active_[i], time);
}

// A silent device is asked even where it owes an answer already: soft-RoCE may have lost the timer of its retries, and
// a new request sets it. It does not count packets that its own network card refuses, so a port that is down is looked
// at here.
void Transport::check_silence(Peer& peer, Time time) {
  Liveness& liveness = peer.liveness;
  liveness.look(time, patience());
  if (!peer.connection.ready() || liveness.left()) return;
  if (liveness.owes_answer_for(time, patience()) && port_stays_down()) return fail(peer, port_failure());
  if (!liveness.is_quiet(time)) return;
  liveness.ask(time);
  if (post(peer, empty_write(peer), Work::kLocal, 0, true)) liveness.asked(time);
}

}  // namespace ibcoll::verbs
