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
constexpr Time kBetweenLooks = 50 * kMillisecond;  // at the port
constexpr uint32_t kFewestLooks = 10;

}  // namespace

// Into the error state, where nothing is written any more. The completions of what was posted are still to come; marks
// behind them tell when they have.
void Transport::break_connection(Peer& peer, uint32_t next_epoch) {
  Connection& connection = peer.connection;
  connection.want_epoch(next_epoch);
  if (connection.is(State::kDraining) || !connection.has_queue_pair()) return;
  std::erase(greeted_, &peer);
  connection.breaks(now() + kDrainPatience);
  ++draining_;
  log(LogLevel::kDebug, "verbs: rank {}: the connection to rank {} is broken, epoch {}", rank_, peer.rank,
      connection.epoch());
  if (!post_receive(peer, Work::kReceiveMark).ok()) connection.draining.receives_done = true;
  ibv_send_wr request = empty_write(peer);
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr_id = work_id(Work::kSendMark, peer, 0);
  ibv_send_wr* bad = nullptr;
  if (!connection.handshake.has_theirs || ibv_post_send(connection.queue_pair(), &request, &bad) != 0)
    connection.draining.sends_done = true;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  if (const int code = ibv_modify_qp(connection.queue_pair(), &attributes, IBV_QP_STATE); code != 0)
    log(LogLevel::kError, "{}", verbs_error(device(), "ibv_modify_qp to ERR", code).text());
}

// Some drivers do not flush what is posted to a queue pair in the error state. Destroying it ends all it could still
// do.
void Transport::end_late_drains() {
  const Time time = now();
  const auto is_late = [=](const std::unique_ptr<Peer>& peer) {
    return peer && peer->connection.is(State::kDraining) && time > peer->connection.draining.deadline;
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
  while (peer.connection.is(State::kDraining))
    if (take_completions() == 0 && now() > peer.connection.draining.deadline) drained(peer);
}

void Transport::drained(Peer& peer) {
  std::erase(active_, &peer);
  // What has landed since the slots were last looked at would not be seen any more: its last words.
  if (peer.receiving.has_next()) mark_ready(peer);
  for (const uint32_t number : peer.exposed.all()) {
    if (!exposure(number).bound) continue;
    exposure(number).window.handle.reset();
    exposure(number).bound = false;
  }
  peer.connection.close();
  --queue_pairs_;
  --draining_;
  log(LogLevel::kDebug, "verbs: rank {}: the connection to rank {} is drained, epoch {}", rank_, peer.rank,
      peer.connection.epoch());
  if (peer.liveness.lost()) return give_up(peer);
  // Where nothing is left to say, the next message connects.
  if (peer.sending.has_unconsumed() || peer.connection.wants_another()) start(peer);
}

// False: again and again nothing has come through, in either direction.
bool Transport::may_reconnect(Peer& peer) {
  return peer.liveness.may_reconnect(peer.sending.known_consumed() + peer.receiving.handed_out());
}

void Transport::connect_anew(Peer& peer) {
  if (!peer.connection.is(State::kDraining) && !may_reconnect(peer))
    return fail(peer,
                fmt::format("{} connections in a row broke before anything came through", peer.liveness.attempts()));
  break_connection(peer, peer.connection.epoch() + 1);
}

// A path that loses packets uses up a device's retries as a dead peer does. So the connection is made anew once more,
// and the peer is lost when it does not answer that.
bool Transport::try_again(Peer& peer) {
  if (peer.connection.is(State::kDraining)) return !peer.liveness.lost();  // given up already
  if (!may_reconnect(peer) || peer.is_leaving()) return false;
  log(LogLevel::kInfo, "verbs: rank {}: rank {} does not answer: a new connection is tried", rank_, peer.rank);
  peer.liveness.answer_by(now() + patience() + 2 * connections_->delay_of_loss());
  break_connection(peer, peer.connection.epoch() + 1);
  return true;
}

void Transport::fail(Peer& peer, std::string why) {
  if (peer.liveness.lost()) return;
  peer.liveness.lose(fmt::format("rank {}: verbs: lost rank {}: {}", rank_, peer.rank, why));
  std::erase(greeted_, &peer);
  if (!peer.connection.has_queue_pair()) return give_up(peer);
  break_connection(peer, peer.connection.epoch());
}

// A peer that said that it leaves has done its part: only who still wants something of it has to know.
void Transport::give_up(Peer& peer) {
  peer.connection.gives_up();
  processes_.remove(peer.rank);
  bool wanted = !peer.is_leaving();
  for (Outgoing& out : peer.sending.all()) {
    if (!out.unsent) continue;
    give_sent(peer, out);
    wanted = true;
  }
  if (wanted) report_failure(peer);
}

void Transport::report_failure(Peer& peer) {
  if (!peer.liveness.begin_report()) return;
  failures_.push_back(&peer);
  ++counters_.failed_peers;
  log(LogLevel::kInfo, "{}", peer.liveness.failure());
}

// Greetings may go unanswered because the peer computes: not when they cannot even leave, nor after a device has given
// up, when there is a time to answer.
void Transport::check_greeted(Time time) {
  for (Peer* peer : std::vector(greeted_)) {
    if (peer->liveness.is_overdue(time))
      fail(*peer,
           "it does not answer any more (transport retry counter exceeded); has its process ended, or its link?");
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

// What was accepted is delivered before this rank leaves, and the peers are told, so that they do not take it for dead.
void Transport::say_goodbye() {
  std::vector<Peer*> untold;
  for (const std::unique_ptr<Peer>& peer : peers_)
    if (peer && !peer->connection.is(State::kFailed) && peer->channel.made()) untold.push_back(peer.get());
  const Time deadline = now() + kGoodbyePatience;
  const auto done = [this](Peer* peer) {
    const Connection& connection = peer->connection;
    if (connection.is(State::kFailed) || peer->is_leaving()) return true;
    if (connection.is(State::kNew) && !peer->sending.has_unconsumed()) return true;
    if (connection.is(State::kGreeting) && peer->sending.accepted() == 0) return true;
    if (!connection.ready() || !peer->sending.has_slot()) return false;
    stage(*peer, SlotKind::kLeaving, {}, {});
    pump(*peer);
    return true;
  };
  const auto everything_left = [this] {
    return std::all_of(peers_.begin(), peers_.end(), [](const std::unique_ptr<Peer>& peer) {
      return !peer || !peer->connection.ready() || peer->is_leaving() ||
             (!peer->sending.has_unposted() && peer->sending.queue.settled());
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
