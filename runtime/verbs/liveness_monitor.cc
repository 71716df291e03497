// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/verbs/liveness_monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace ibcoll::verbs {
namespace {

constexpr Time kBetweenLooks = 50 * kMillisecond;  // at the device, and at the port
constexpr uint32_t kFewestLooks = 10;
constexpr std::string_view kNoAnswer =
    "it does not answer any more (transport retry counter exceeded); has its process ended, or its link?";

}  // namespace

// Greetings may go unanswered because the peer computes: not when they cannot even leave, nor after a device has given
// up, when there is a time to answer.
void LivenessMonitor::check_greeted(Time time) {
  for (Peer* peer : std::vector(connector_.greeted())) {
    if (peer->liveness.is_overdue(time))
      recovery_.fail(*peer, port_state_ != IBV_PORT_ACTIVE ? port_failure() : std::string(kNoAnswer));
    else if (!peer->liveness.has_deadline() && port_stays_down())
      recovery_.fail(*peer, port_failure());
  }
}

// Only while a peer does not answer. Links come back: a peer is given up only if the link is down for as long as a
// device retries. Of the time between two looks only a part counts, as a program that computes looks rarely.
void LivenessMonitor::look_at_port(Time time) {
  const std::vector<Peer*>& active = local_.peers.with_queue_pair;
  const auto asked = [](const Peer* peer) { return peer->liveness.is_asked(); };
  if (connector_.greeted().empty() && std::none_of(active.begin(), active.end(), asked)) {
    port_state_ = IBV_PORT_ACTIVE;
    return;
  }
  if (time - port_looked_at_ < kBetweenLooks) return;
  const Time since = time - std::exchange(port_looked_at_, time);
  const bool was_down = port_state_ != IBV_PORT_ACTIVE;
  ibv_port_attr port{};
  port_error_ = ibv_query_port(local_.adapter.device(), local_.adapter.route().port, &port);
  port_state_ = port_error_ == 0 ? port.state : IBV_PORT_NOP;
  port_down_for_ = was_down ? port_down_for_ + std::min(since, local_.settings.retry_time() / kFewestLooks) : 0;
}

bool LivenessMonitor::port_stays_down() const {
  return port_state_ != IBV_PORT_ACTIVE && port_down_for_ > local_.settings.retry_time();
}

std::string LivenessMonitor::port_failure() const {
  if (port_error_ != 0)
    return fmt::format("the port {}:{} cannot be asked for its state: {}; is the device still there? (dmesg)",
                       local_.adapter.name(), local_.adapter.port().number, std::strerror(port_error_));
  return fmt::format("the port {}:{} is {}; check the cable, the subnet manager or `ip link`", local_.adapter.name(),
                     local_.adapter.port().number, ibv_port_state_str(port_state_));
}

// A device answers for its process, also while that computes; the process's end shows as a missing answer.
void LivenessMonitor::check() {
  for (const int rank : local_.peers.processes.ended())
    recovery_.fail(*local_.peers.find(static_cast<size_t>(rank)), "its process has ended");
  const Time time = now();
  if (time - device_looked_at_ >= kBetweenLooks) {
    device_looked_at_ = time;
    recovery_.look_at_device();
  }
  look_at_port(time);
  check_greeted(time);
  const std::vector<Peer*>& active = local_.peers.with_queue_pair;
  for (size_t i = 0; i < active.size(); ++i) check_silence(*active[i], time);
}

// A silent device is asked again while an answer is missing: soft-RoCE may have lost the timer of its retries, and a
// new request sets it. It does not count packets that its own network card refuses, so the port is checked here.
void LivenessMonitor::check_silence(Peer& peer, Time time) {
  Liveness& liveness = peer.liveness;
  liveness.look(time, local_.settings.retry_time());
  if (!peer.connection.ready() || liveness.left()) return;
  if (liveness.unanswered_for(time, local_.settings.retry_time()) && port_stays_down())
    return recovery_.fail(peer, port_failure());
  if (!liveness.is_quiet(time)) return;
  liveness.ask(time);
  if (requests_.post(peer, empty_write(peer), Work::kLocal, 0, true)) liveness.asked(time);
}

}  // namespace ibcoll::verbs
