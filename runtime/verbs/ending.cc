// SPDX-License-Identifier: BSD-3-Clause
// Connections that break, and peers that are lost.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/log.h"
#include "runtime/verbs/transport.h"

namespace ibcoll::verbs {

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
  if (!post_receives(peer, Work::kReceiveMark, 1).ok()) connection.draining.receives_done = true;
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
  if (peer.has_message()) outbox_.ready(peer);
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

void Transport::fail(Peer& peer, std::string_view why) {
  if (peer.liveness.lost()) return;
  peer.liveness.lose(fmt::format("rank {}: verbs: lost rank {}: {}", rank_, peer.rank, why), IBCOLL_OK);
  lose(peer);
}

// This rank cannot reach the peer, for a reason of its own that no other rank knows better. So it is reported before
// the connection has drained.
void Transport::lack(Peer& peer, const Status& what) {
  if (peer.liveness.lost()) return;
  peer.liveness.lose(fmt::format("verbs: {}", what.text()), what.code());
  if (!peer.is_leaving()) report_failure(peer);
  lose(peer);
}

void Transport::lose(Peer& peer) {
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
  outbox_.failed(peer, peer.liveness.failure(), peer.liveness.lack());
  ++counters_.failed_peers;
  if (peer.liveness.lack() == IBCOLL_OK)
    log(LogLevel::kInfo, "{}", peer.liveness.failure());
  else
    log(LogLevel::kInfo, "rank {} cannot reach rank {}: {}", rank_, peer.rank, peer.liveness.failure());
}

}  // namespace ibcoll::verbs
