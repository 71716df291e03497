// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/verbs/connector.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "runtime/base/hash.h"
#include "runtime/base/log.h"
#include "runtime/base/reserve.h"
#include "runtime/verbs/rdmacm.h"
#include "runtime/verbs/recovery.h"

namespace ibcoll::verbs {
namespace {

constexpr uint32_t kMostInline = 220;

// 24 bits. Another job begins elsewhere: devices may still send for its ended processes. Epochs in a row are far from
// each other, as packets of the one before may still be under way to a queue pair of the same number.
uint32_t first_packet(uint64_t job, uint32_t queue_pair, uint32_t epoch) {
  constexpr auto kFarApart = static_cast<uint32_t>(kGoldenRatio >> 32);
  return (Digest().add(job).add(queue_pair).folded() + epoch * kFarApart) >> 8;
}

// The kernel returns this code where it does not know, or not now, how to reach an address.
bool out_of_reach(int code) {
  return code == ETIMEDOUT || code == EHOSTUNREACH || code == ENETUNREACH || code == EAGAIN;
}

}  // namespace

Status Connector::open(const Config& config) {
  const Adapter& adapter = local_.adapter;
  Result<std::unique_ptr<ConnectionManager>> opened =
      config.text("IBCOLL_VERBS_CONNECT") == "rdmacm"
          ? RdmaCm::open(local_.rank, local_.size, local_.job, adapter.choice(), config)
          : Greetings::open(adapter.domain(), adapter.route(), adapter.port().mtu);
  if (!opened.ok()) return opened.status();
  manager_ = std::move(*opened);
  return {};
}

bool Connector::start(Peer& peer) {
  // Each peer is in each list once at most.
  reserve_one(greeted_);
  reserve_one(local_.peers.with_queue_pair);
  sender_.reserve(local_.peers.with_queue_pair.capacity());
  const size_t used = local_.peers.with_queue_pair.size(), most = local_.settings.most_queue_pairs;
  QueuePair made;
  uint32_t most_inline = 0;
  Status status = used < most
                      ? exposures_.with_room([&] {
                          Status channel = peer.make_channel(local_.adapter.domain(), local_.settings.notify);
                          return channel.ok() ? make_queue_pair(made, most_inline) : channel;
                        })
                      : error(IBCOLL_ERR_TRANSPORT,
                              "it would take queue pair number {}; IBCOLL_VERBS_QUEUE_PAIRS or the device allows {}",
                              used + 1, most);
  if (peer.liveness.lost()) return false;  // a poll for room has found that
  // Now nothing throws any more, so that no epoch is taken in vain: the peer would have to answer the next one in time.
  peer.connection.next_epoch();
  peer.new_keys.start();
  if (status.ok()) status = open_queue_pair(peer, std::move(made), most_inline);
  if (!status.ok()) {
    recovery_.lack(peer, status);
    return false;
  }
  peer.connection.greets(my_greeting(peer));
  if (Status renewed = exposures_.renew(peer); !renewed.ok()) {
    recovery_.lack(peer, renewed);
    return false;
  }
  const Time time = now();
  started_at_.store(time, std::memory_order_relaxed);
  if (peer.connection.epoch() > 1 && !peer.liveness.has_deadline()) peer.liveness.answer_by(time + time_to_answer());
  // However long it took to get here, the peer may have to drain as well, and greetings may be lost.
  peer.liveness.may_take_until(time + kDrainTimeout + 2 * manager_->delay_of_loss());
  greeted_.push_back(&peer);
  return true;
}

// A shortage of memory delays them, and nothing else.
void Connector::connect_drained() noexcept {
  const auto begins = [](const Peer* peer) {
    return peer && peer->connection.is(State::kNew) && peer->connection.epoch() > 0 && !peer->liveness.lost() &&
           (peer->sending.has_unconsumed() || peer->connection.wants_another());
  };
  while (std::exchange(has_drained_, false)) {
    try {
      for (const std::unique_ptr<Peer>& peer : local_.peers.all())
        if (begins(peer.get())) start(*peer);
    } catch (const std::bad_alloc&) {
      has_drained_ = true;
      return;
    }
  }
}

Greeting Connector::my_greeting(const Peer& peer) const {
  Greeting mine;
  mine.job = local_.job;
  mine.from = static_cast<uint32_t>(local_.rank);
  mine.to = static_cast<uint32_t>(peer.rank);
  mine.epoch = peer.connection.epoch();
  mine.queue_pair = peer.connection.queue_pair()->qp_num;
  mine.first_packet = first_packet(local_.job, mine.queue_pair, mine.epoch);
  mine.landing_key = peer.channel.landing_key();
  mine.landing_address = reinterpret_cast<uint64_t>(&peer.channel->landing);
  mine.delivered = peer.receiving.delivered();
  mine.mtu = static_cast<uint8_t>(local_.adapter.port().mtu);
  mine.notify = local_.settings.notify;
  return mine;
}

// With room for its completions.
Status Connector::make_queue_pair(QueuePair& made, uint32_t& most_inline) {
  if (Status room = local_.adapter.make_room(local_.peers.with_queue_pair.size() + 1); !room.ok()) return room;
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = local_.adapter.completions();
  wanted.qp_type = IBV_QPT_RC;
  for (const uint32_t tried : {kMostInline, 0u}) {  // a device without inline data
    wanted.cap = {kSendDepth + 1, kReceiveDepth, 1, 1, tried};
    made.reset(ibv_create_qp(local_.adapter.domain(), &wanted));
    if (!made) continue;
    most_inline = wanted.cap.max_inline_data;
    return {};
  }
  return verbs_error(local_.adapter.name(), "ibv_create_qp (reliable connection)", errno);
}

Status Connector::open_queue_pair(Peer& peer, QueuePair made, uint32_t most_inline) {
  peer.connection.opened(std::move(made), most_inline);
  peer.sending.queue = {};
  local_.peers.with_queue_pair.push_back(&peer);

  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = local_.adapter.route().port;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  const int code = ibv_modify_qp(peer.connection.queue_pair(), &attributes,
                                 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (code != 0) return verbs_error(local_.adapter.name(), "ibv_modify_qp to INIT", code);
  return requests_.post_receives(peer, Work::kReceive, kReceives);
}

// Ready to receive, and to send as soon as the peer is known to be ready too. TRANSPORT: the greeting is out of date.
// TIMEOUT: there is no way to the peer now; nothing has changed.
Status Connector::get_ready(Peer& peer, const Greeting& theirs) {
  ibv_qp_attr attributes{};
  if (Status status = manager_->find_path(theirs, attributes); !status.ok()) return status;
  attributes.qp_state = IBV_QPS_RTR;
  attributes.dest_qp_num = theirs.queue_pair;
  attributes.rq_psn = theirs.first_packet;
  attributes.min_rnr_timer = 12;
  peer.new_keys.reserve(theirs.rekeys);
  int code = ibv_modify_qp(peer.connection.queue_pair(), &attributes,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (out_of_reach(code))
    return Status(IBCOLL_ERR_TIMEOUT, verbs_error(local_.adapter.name(), "ibv_modify_qp to RTR", code).text());
  if (code != 0) return verbs_error(local_.adapter.name(), "ibv_modify_qp to RTR", code);
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = local_.settings.timeout;
  attributes.retry_cnt = local_.settings.retries;
  attributes.rnr_retry =
      local_.settings.retries;  // never 7, which is without end; the soft-RoCE driver takes it so for retry_cnt too
  attributes.sq_psn = peer.connection.handshake.mine.first_packet;
  code = ibv_modify_qp(
      peer.connection.queue_pair(), &attributes,
      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  if (code != 0) return verbs_error(local_.adapter.name(), "ibv_modify_qp to RTS", code);
  peer.connection.has_received(theirs);
  peer.new_keys.expect(theirs.rekeys);
  return {};
}

}  // namespace ibcoll::verbs
