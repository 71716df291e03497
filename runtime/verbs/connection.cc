// SPDX-License-Identifier: BSD-3-Clause
// Connections: made on first use, made anew after an error completion, given up when the peer does not answer.
// Their states stand in connection.h; greeting.cc makes them ready, ending.cc breaks them.
#include "runtime/verbs/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "runtime/base/hash.h"
#include "runtime/base/log.h"
#include "runtime/verbs/transport.h"

namespace ibcoll::verbs {
namespace {

constexpr uint32_t kMostInline = 220;

// 24 bits. Another job begins elsewhere: devices may still send for its ended processes. Epochs in a row are far from
// each other, as packets of the one before may still be under way to a queue pair of the same number.
uint32_t first_packet(uint64_t job, uint32_t queue_pair, uint32_t epoch) {
  constexpr auto kFarApart = static_cast<uint32_t>(kGoldenRatio >> 32);
  return (Digest().add(job).add(queue_pair).folded() + epoch * kFarApart) >> 8;
}

// What the kernel says where it does not know, or not now, how to reach an address.
bool out_of_reach(int code) {
  return code == ETIMEDOUT || code == EHOSTUNREACH || code == ENETUNREACH || code == EAGAIN;
}

}  // namespace

Peer* Transport::find_or_make(int rank) {
  if (rank < 0 || rank >= size_ || rank == rank_ || addresses_.empty()) return nullptr;
  std::unique_ptr<Peer>& peer = peers_[static_cast<size_t>(rank)];
  if (!peer) {
    peer = std::make_unique<Peer>();
    peer->rank = rank;
    processes_.add_if_local(rank, addresses_[static_cast<size_t>(rank)].process);
  }
  return peer.get();
}

// From kNew to kGreeting. False: the peer has failed instead.
bool Transport::start(Peer& peer) {
  peer.connection.next_epoch();
  peer.new_keys.start();
  const auto make = [&] {
    Status made = peer.make_channel(domain_.get(), settings_.notify);
    return made.ok() ? make_queue_pair(peer) : made;
  };
  const Status status =
      queue_pairs_ < settings_.most_queue_pairs
          ? registrations_->with_room(make)
          : error(IBCOLL_ERR_TRANSPORT,
                  "it would take queue pair number {}; IBCOLL_VERBS_QUEUE_PAIRS or the device allows {}",
                  queue_pairs_ + 1, settings_.most_queue_pairs);
  if (!status.ok()) {
    lack(peer, status);
    return false;
  }
  peer.connection.greets(my_greeting(peer));
  refresh_exposures(peer);
  if (!peer.connection.is(State::kGreeting)) return false;
  const Time time = now();
  started_at_.store(time, std::memory_order_relaxed);
  if (peer.connection.epoch() > 1 && !peer.liveness.has_deadline()) peer.liveness.answer_by(time + time_to_answer());
  // However long it took to get here, the peer may have to drain as well, and greetings may be lost.
  peer.liveness.may_take_until(time + kDrainPatience + 2 * connections_->delay_of_loss());
  greeted_.push_back(&peer);
  return true;
}

Greeting Transport::my_greeting(const Peer& peer) const {
  Greeting mine;
  mine.job = job_;
  mine.from = static_cast<uint32_t>(rank_);
  mine.to = static_cast<uint32_t>(peer.rank);
  mine.epoch = peer.connection.epoch();
  mine.queue_pair = peer.connection.queue_pair()->qp_num;
  mine.first_packet = first_packet(job_, mine.queue_pair, mine.epoch);
  mine.landing_key = peer.channel.landing_key();
  mine.landing_address = reinterpret_cast<uint64_t>(&peer.channel->landing);
  mine.delivered = peer.receiving.delivered();
  mine.mtu = static_cast<uint8_t>(choice_.port.mtu);
  mine.notify = settings_.notify;
  return mine;
}

Status Transport::grow_completion_queue(size_t queue_pairs) {
  const int needed = completions_for(queue_pairs);
  if (completions_->cqe >= needed) return {};
  const int wanted = std::min(choice_.port.most_completions, 2 * needed);
  if (const int code = ibv_resize_cq(completions_.get(), wanted); code != 0)
    return verbs_error(device(), fmt::format("ibv_resize_cq to {} completions", wanted), code > 0 ? code : errno);
  return {};
}

Status Transport::make_queue_pair(Peer& peer) {
  if (Status status = grow_completion_queue(queue_pairs_ + 1); !status.ok()) return status;
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = completions_.get();
  wanted.cap = {kSendDepth + 1, kReceiveDepth, 1, 1, kMostInline};
  wanted.qp_type = IBV_QPT_RC;
  QueuePair made(ibv_create_qp(domain_.get(), &wanted));
  if (!made) {
    wanted.cap = {kSendDepth + 1, kReceiveDepth, 1, 1, 0};  // a device without inline data
    made.reset(ibv_create_qp(domain_.get(), &wanted));
  }
  if (!made) return verbs_error(device(), "ibv_create_qp (reliable connection)", errno);
  peer.connection.opened(std::move(made), wanted.cap.max_inline_data);
  peer.sending.queue = {};
  ++queue_pairs_;
  active_.push_back(&peer);

  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = route_.port;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  const int code = ibv_modify_qp(peer.connection.queue_pair(), &attributes,
                                 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (code != 0) return verbs_error(device(), "ibv_modify_qp to INIT", code);
  return post_receives(peer, Work::kReceive, kReceives);
}

// Ready to receive, and to send as soon as the peer is known to be ready too. TRANSPORT: the greeting is out of date.
// TIMEOUT: there is no way to the peer now; nothing has changed.
Status Transport::get_ready(Peer& peer, const Greeting& theirs) {
  ibv_qp_attr attributes{};
  if (Status status = connections_->find_path(theirs, attributes); !status.ok()) return status;
  attributes.qp_state = IBV_QPS_RTR;
  attributes.dest_qp_num = theirs.queue_pair;
  attributes.rq_psn = theirs.first_packet;
  attributes.min_rnr_timer = 12;
  int code = ibv_modify_qp(peer.connection.queue_pair(), &attributes,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (out_of_reach(code)) return Status(IBCOLL_ERR_TIMEOUT, verbs_error(device(), "ibv_modify_qp to RTR", code).text());
  if (code != 0) return verbs_error(device(), "ibv_modify_qp to RTR", code);
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = settings_.timeout;
  attributes.retry_cnt = settings_.retries;
  attributes.rnr_retry =
      settings_.retries;  // never 7, which is without end; the soft-RoCE driver takes it so for retry_cnt too
  attributes.sq_psn = peer.connection.handshake.mine.first_packet;
  code = ibv_modify_qp(
      peer.connection.queue_pair(), &attributes,
      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  if (code != 0) return verbs_error(device(), "ibv_modify_qp to RTS", code);
  peer.connection.has_heard(theirs);
  peer.new_keys.expect(theirs.rekeys);
  return {};
}

}  // namespace ibcoll::verbs
