// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/verbs/recovery.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/log.h"

namespace ibcoll::verbs {

// Into the error state, where nothing is written any more. The completions of what was posted are still to come, and
// those of two marks, posted last, come after them.
void Recovery::break_connection(Peer& peer, uint32_t next_epoch) {
  Connection& connection = peer.connection;
  connection.want_epoch(next_epoch);
  if (connection.is(State::kDraining) || !connection.has_queue_pair()) return;
  connector_.stop_greeting(peer);
  connection.breaks(now() + kDrainTimeout);
  ++draining_;
  log(LogLevel::kDebug, "verbs: rank {}: the connection to rank {} is broken, epoch {}", local_.rank, peer.rank,
      connection.epoch());
  if (!requests_.post_receives(peer, Work::kReceiveMark, 1).ok()) connection.draining.receives_done = true;
  ibv_send_wr request = empty_write(peer);
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr_id = work_id(Work::kSendMark, peer, 0);
  ibv_send_wr* bad = nullptr;
  if (!connection.handshake.has_theirs || ibv_post_send(connection.queue_pair(), &request, &bad) != 0)
    connection.draining.sends_done = true;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  if (const int code = ibv_modify_qp(connection.queue_pair(), &attributes, IBV_QP_STATE); code != 0)
    log(LogLevel::kError, "{}", verbs_error(local_.adapter.name(), "ibv_modify_qp to ERR", code).text());
}

void Recovery::drained(Peer& peer) {
  std::erase(local_.peers.with_queue_pair, &peer);
  // The slots of this peer are not polled any more: messages may have landed since the last poll.
  if (peer.has_message()) local_.outbox.ready(peer);
  exposures_.unbind(peer);
  peer.connection.close();
  --draining_;
  log(LogLevel::kDebug, "verbs: rank {}: the connection to rank {} is drained, epoch {}", local_.rank, peer.rank,
      peer.connection.epoch());
  if (peer.liveness.lost()) return give_up(peer);
  connector_.note_drained();
}

// False: too many connections in a row have carried no message in either direction.
bool Recovery::may_reconnect(Peer& peer) {
  return peer.liveness.may_reconnect(peer.sending.known_consumed() + peer.receiving.handed_out());
}

void Recovery::connect_anew(Peer& peer) {
  if (!peer.connection.is(State::kDraining) && !may_reconnect(peer))
    return fail(peer, text_or(kNoText, [&] {
                  return fmt::format("{} connections in a row broke before anything came through",
                                     peer.liveness.attempts());
                }));
  break_connection(peer, peer.connection.epoch() + 1);
}

// A path that loses packets uses up a device's retries as a dead peer does. So the connection is made anew once more,
// and the peer is lost when it does not answer that.
bool Recovery::try_again(Peer& peer) {
  if (peer.connection.is(State::kDraining)) return !peer.liveness.lost();  // given up already
  if (!may_reconnect(peer) || peer.is_leaving()) return false;
  log(LogLevel::kInfo, "verbs: rank {}: rank {} does not answer: a new connection is tried", local_.rank, peer.rank);
  peer.liveness.answer_by(now() + local_.settings.retry_time() + 2 * connector_.manager().delay_of_loss());
  break_connection(peer, peer.connection.epoch() + 1);
  return true;
}

void Recovery::fail(Peer& peer, std::string_view why) {
  if (peer.liveness.lost()) return;
  peer.liveness.lose(
      text_or(kNoText, [&] { return fmt::format("rank {}: verbs: lost rank {}: {}", local_.rank, peer.rank, why); }),
      IBCOLL_OK);
  lose(peer);
}

void Recovery::lack(Peer& peer, const Status& what) {
  if (peer.liveness.lost()) return;
  peer.liveness.lose(text_or(kNoText, [&] { return fmt::format("verbs: {}", what.text()); }), what.code());
  if (!peer.is_leaving()) report(peer);
  lose(peer);
}

// A link that ends may come back, which LivenessMonitor waits for; a device does not.
bool Recovery::look_at_device() {
  bool ended = false;
  while (const std::optional<ibv_async_event> event = local_.adapter.next_event()) {
    log(LogLevel::kInfo, "verbs: rank {}: {} reports: {}", local_.rank, local_.adapter.name(),
        ibv_event_type_str(event->event_type));
    ended = ended || event->event_type == IBV_EVENT_DEVICE_FATAL;
  }
  if (!ended) return false;
  const Status why = error(IBCOLL_ERR_TRANSPORT,
                           "{}, this rank's own device, has failed or was removed ({}): dmesg may say why; "
                           "IBCOLL_VERBS_DEVICE names another one, IBCOLL_NET=ucx takes another network",
                           local_.adapter.name(), ibv_event_type_str(IBV_EVENT_DEVICE_FATAL));
  for (const std::unique_ptr<Peer>& peer : local_.peers.all())
    if (peer) lack(*peer, why);
  return true;
}

void Recovery::lose(Peer& peer) {
  connector_.stop_greeting(peer);
  if (!peer.connection.has_queue_pair()) return give_up(peer);
  break_connection(peer, peer.connection.epoch());
}

// The failure of a peer that has said goodbye is reported only if puts to it are pending.
void Recovery::give_up(Peer& peer) {
  peer.connection.gives_up();
  local_.peers.processes.remove(peer.rank);
  bool wanted = !peer.is_leaving();
  for (Outgoing& out : peer.sending.all()) {
    if (!out.sent_pending) continue;
    sender_.report_sent(peer, out);
    wanted = true;
  }
  if (wanted) report(peer);
}

void Recovery::report(Peer& peer) {
  if (!peer.liveness.begin_report()) return;
  local_.outbox.failed(peer, peer.liveness.failure(), peer.liveness.lack());
  ++failed_peers_;
  if (peer.liveness.lack() == IBCOLL_OK)
    log(LogLevel::kInfo, "{}", peer.liveness.failure());
  else
    log(LogLevel::kInfo, "rank {} cannot reach rank {}: {}", local_.rank, peer.rank, peer.liveness.failure());
}

}  // namespace ibcoll::verbs
