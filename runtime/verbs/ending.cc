// SPDX-License-Identifier: BSD-3-Clause
// Connections that break, peers that are lost, and how a rank leaves.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "runtime/base/log.h"
#include "runtime/verbs/transport.h"

namespace ibcoll::verbs {
namespace {

constexpr Time kGoodbyePatience = 3'000 * kMillisecond;
constexpr uint32_t kMostAttempts = 16;         // to connect, while nothing comes through
constexpr Time kQuiet = 1'000 * kMillisecond;  // after so long a silence a peer's device is asked for a sign of life
constexpr Time kBetweenLooks = 50 * kMillisecond;  // at the port
constexpr uint32_t kFewestLooks = 10;

}  // namespace

// Into the error state, where nothing is written any more. The completions of what was posted are still to come; marks
// behind them tell when they have.
void Transport::break_connection(Peer& peer, uint32_t next_epoch) {
  peer.wanted_epoch = std::max(peer.wanted_epoch, next_epoch);
  if (peer.state == Peer::State::kDraining || !peer.queue_pair) return;
  std::erase(greeted_, &peer);
  peer.state = Peer::State::kDraining;
  ++draining_;
  log(LogLevel::kDebug, "verbs: rank {}: the connection to rank {} is broken, epoch {}", rank_, peer.rank, peer.epoch);
  peer.drain_deadline = now() + kDrainPatience;
  if (!post_receive(peer, Work::kReceiveMark).ok()) peer.receive_drained = true;
  ibv_send_wr request = empty_write(peer);
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr_id = work_id(Work::kSendMark, peer, 0);
  ibv_send_wr* bad = nullptr;
  if (!peer.has_theirs || ibv_post_send(peer.queue_pair.get(), &request, &bad) != 0) peer.send_drained = true;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  if (const int code = ibv_modify_qp(peer.queue_pair.get(), &attributes, IBV_QP_STATE); code != 0)
    log(LogLevel::kError, "{}", verbs_error(device(), "ibv_modify_qp to ERR", code).text());
}

// Some drivers do not flush what is posted to a queue pair in the error state. Destroying it ends all it could still
// do.
void Transport::end_late_drains() {
  const Time time = now();
  const auto is_late = [=](const std::unique_ptr<Peer>& peer) {
    return peer && peer->state == Peer::State::kDraining && time > peer->drain_deadline;
  };
  if (std::none_of(peers_.begin(), peers_.end(), is_late)) return;
  // A program may have stayed away for long. What the device has reported meanwhile has happened: a peer may have been
  // told that its put is here.
  while (take_completions() > 0) {
  }
  for (const std::unique_ptr<Peer>& peer : peers_)
    if (is_late(peer)) drained(*peer);
}

void Transport::wait_until_drained(Peer& peer) {
  while (peer.state == Peer::State::kDraining)
    if (take_completions() == 0 && now() > peer.drain_deadline) drained(peer);
}

void Transport::drained(Peer& peer) {
  std::erase(active_, &peer);
  // What has landed since the slots were last looked at would not be seen any more: its last words.
  if (has_message(peer, peer.handed_out + 1, 0)) mark_ready(peer);
  for (const uint32_t number : peer.exposures) {
    if (!exposure(number).bound) continue;
    exposure(number).window.handle.reset();
    exposure(number).bound = false;
  }
  peer.queue_pair.reset();
  --queue_pairs_;
  --draining_;
  log(LogLevel::kDebug, "verbs: rank {}: the connection to rank {} is drained, epoch {}", rank_, peer.rank, peer.epoch);
  peer.state = Peer::State::kNew;
  if (peer.failing) return give_up(peer);
  // Where nothing is left to say, the next message connects.
  const bool unsaid = peer.accepted > peer.known_consumed() || peer.wanted_epoch > peer.epoch;
  if (unsaid) start(peer);
}

// False: again and again nothing has come through, in either direction.
bool Transport::may_reconnect(Peer& peer) {
  const uint64_t come_through = peer.known_consumed() + peer.handed_out;
  if (come_through > peer.attempted_after) peer.attempts = 0;
  peer.attempted_after = come_through;
  return ++peer.attempts <= kMostAttempts;
}

std::string Transport::broken_in_a_row(const Peer& peer) {
  return fmt::format("{} connections in a row broke before anything came through", peer.attempts);
}

// A path that loses packets uses up a device's retries as a dead peer does. So the connection is made anew once more,
// and the peer is lost when it does not answer that.
bool Transport::try_again(Peer& peer) {
  if (peer.state == Peer::State::kDraining) return !peer.failing;  // given up already
  if (!may_reconnect(peer) || is_leaving(peer)) return false;
  log(LogLevel::kInfo, "verbs: rank {}: rank {} does not answer: a new connection is tried", rank_, peer.rank);
  peer.answer_by = now() + patience() + 2 * connections_->delay_of_loss();
  break_connection(peer, peer.epoch + 1);
  return true;
}

void Transport::fail(Peer& peer, std::string why) {
  if (peer.state == Peer::State::kFailed || peer.failing) return;
  peer.failing = true;
  peer.failure = fmt::format("rank {}: verbs: lost rank {}: {}", rank_, peer.rank, why);
  std::erase(greeted_, &peer);
  if (!peer.queue_pair) return give_up(peer);
  break_connection(peer, peer.epoch);
}

// A peer that said that it leaves has done its part: only who still wants something of it has to know.
void Transport::give_up(Peer& peer) {
  peer.state = Peer::State::kFailed;
  processes_.remove(peer.rank);
  bool wanted = !is_leaving(peer);
  for (Outgoing& out : peer.outgoing) {
    if (!out.unsent) continue;
    give_sent(peer, out);
    wanted = true;
  }
  if (wanted) report_failure(peer);
}

void Transport::report_failure(Peer& peer) {
  if (peer.failure_reported) return;
  peer.failure_reported = true;
  failures_.push_back(&peer);
  ++counters_.failed_peers;
  log(LogLevel::kInfo, "{}", peer.failure);
}

// Greetings may go unanswered because the peer computes: not when they cannot even leave, nor after a device has given
// up, when there is a time to answer.
void Transport::check_greeted(Time time) {
  for (Peer* peer : std::vector(greeted_)) {
    if (peer->answer_by != 0 && time > peer->answer_by)
      fail(*peer,
           "it does not answer any more (transport retry counter exceeded); has its process ended, or its link?");
    else if (peer->answer_by == 0 && port_stays_down())
      fail(*peer, port_failure());
  }
}

// While somebody does not answer. Links come back: only one that is down for as long as a device tries is a reason to
// give a peer up. Of the time between two looks a part counts, as a program that computes looks seldom.
void Transport::look_at_port(Time time) {
  const auto asked = [](const Peer* peer) { return peer->first_asked != 0; };
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
  if (std::exchange(peer.heard, false)) {
    peer.last_heard = time;
    peer.first_asked = 0;
    if (time - peer.ready_since > patience()) peer.attempts = 0;  // this connection holds
  }
  if (peer.state != Peer::State::kReady || peer.left) return;
  if (peer.first_asked != 0 && time - peer.first_asked > patience() && port_stays_down())
    return fail(peer, port_failure());
  if (time - std::max(peer.last_heard, peer.last_asked) < kQuiet) return;
  if (peer.first_asked == 0) peer.first_asked = time;
  if (post(peer, empty_write(peer), Work::kLocal, 0, true)) peer.last_asked = time;
}

// Whether its goodbye is among the messages that were not handed out.
bool Transport::is_leaving(const Peer& peer) const {
  if (peer.left) return true;
  const uint64_t end = delivered(peer);
  for (uint64_t sequence = peer.handed_out + 1; sequence <= end; ++sequence)
    if (peer.landed(sequence).header.kind == SlotKind::kLeaving) return true;
  return false;
}

// What was accepted is delivered before this rank leaves, and the peers are told, so that they do not take it for dead.
void Transport::say_goodbye() {
  std::vector<Peer*> untold;
  for (const std::unique_ptr<Peer>& peer : peers_)
    if (peer && peer->state != Peer::State::kFailed && peer->channel) untold.push_back(peer.get());
  const Time deadline = now() + kGoodbyePatience;
  const auto done = [this](Peer* peer) {
    if (peer->state == Peer::State::kFailed || is_leaving(*peer)) return true;
    if (peer->state == Peer::State::kNew && peer->accepted <= peer->known_consumed()) return true;
    if (peer->state == Peer::State::kGreeting && peer->accepted == 0) return true;
    if (peer->state != Peer::State::kReady || !peer->has_slot()) return false;
    stage(*peer, SlotKind::kLeaving, {}, {});
    pump(*peer);
    return true;
  };
  const auto everything_left = [this] {
    return std::all_of(peers_.begin(), peers_.end(), [this](const std::unique_ptr<Peer>& peer) {
      return !peer || peer->state != Peer::State::kReady || is_leaving(*peer) ||
             (peer->posted_up_to == peer->accepted && (peer->posted == 0 || peer->completed > peer->signaled));
    });
  };
  while (now() < deadline) {
    std::erase_if(untold, done);
    if (untold.empty() && everything_left()) return;
    if (take_completions() == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
    serve_greetings();
    retry_pumps();
  }
  log(LogLevel::kInfo, "verbs: rank {}: left without an answer of all peers", rank_);
}

}  // namespace ibcoll::verbs
