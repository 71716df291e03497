// SPDX-License-Identifier: BSD-3-Clause
// The sending side of a queue pair: requests are executed in order, retried, acknowledged, completed.
#include <algorithm>
#include <utility>

#include "tests/fake_verbs/queue_pair.h"

namespace ibcoll::fake_verbs {
namespace {

constexpr uint64_t kBetweenRetries = 64;  // polls
constexpr uint8_t kEndless = 7;           // receiver-not-ready retries

bool is_write(ibv_wr_opcode opcode) { return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM; }

// False: the device may not read one of the elements.
bool gather(const QueuePair& from, const WorkRequest& request, std::vector<std::byte>& data) {
  data = request.inlined;
  if ((request.request.send_flags & IBV_SEND_INLINE) != 0) return true;
  for (const ibv_sge& sge : request.sges) {
    const std::byte* const begin = readable(from.pd, sge);
    if (begin == nullptr) return false;
    data.insert(data.end(), begin, begin + sge.length);
  }
  return true;
}

// At multiples of 8 bytes: no processor sees less of a word that was written at once.
void cut(Message& message) {
  constexpr size_t kMostFragments = 12;
  const size_t words = message.data.size() / 8;
  std::vector<size_t> ends{message.data.size()};
  for (size_t i = 1; words > 1 && i < std::min(words, 1 + fabric().pick(kMostFragments)); ++i)
    ends.push_back(8 * (1 + fabric().pick(words - 1)) - message.to % 8);
  std::sort(ends.begin(), ends.end());
  size_t begin = 0;
  for (const size_t end : ends) {
    if (end > begin) message.fragments.push_back({begin, end - begin});
    begin = std::max(begin, end);
  }
}

}  // namespace

bool QueuePair::move() {
  if (is_removed(context)) return false;
  if (state == IBV_QPS_ERR || state == IBV_QPS_SQE) return rank_of(context).traits.flushes && flush();
  // Begins with one of three; what is nothing to do passes on to the next.
  const size_t first = fabric().pick(3);
  for (size_t i = 0; i < 3; ++i) {
    const size_t which = (first + i) % 3;
    if (which == 0 && executed < requests.size() && execute(requests[executed])) return true;
    if (which == 1 && complete_first()) return true;
    if (which == 2 && land()) return true;
  }
  return false;
}

bool QueuePair::execute(WorkRequest& request) {
  if (state != IBV_QPS_RTS || retry_at > fabric().now || request.not_before > fabric().now) return false;
  // An error ends all: what comes after it is flushed.
  if (executed > 0 && requests[executed - 1].status != IBV_WC_SUCCESS) return false;
  if (is_write(request.request.opcode)) {
    if (!write(request)) return true;
  } else if (qp_type == IBV_QPT_UD) {
    send_datagram(request);
  } else if (request.request.opcode == IBV_WR_BIND_MW) {
    request.status = bind(*this, request.request);
  } else if (request.request.opcode == IBV_WR_LOCAL_INV) {
    request.status = invalidate(*this, request.request.invalidate_rkey);
  } else {
    request.status = IBV_WC_LOC_QP_OP_ERR;
  }
  request.done_at = fabric().now + fabric().pick(fabric().script.slowest + 1);
  ++executed;
  return true;
}

// Both sides must be of one connection: numbers, first packets, addresses.
QueuePair* QueuePair::peer() const {
  QueuePair* const found = fabric().queue_pair(attributes.dest_qp_num);
  const bool fits = found != nullptr && found->qp_type == IBV_QPT_RC && found->can_receive() &&
                    found->attributes.dest_qp_num == qp_num && found->attributes.rq_psn == attributes.sq_psn &&
                    is_address_of(found->rank(), attributes.ah_attr) && found->port_is_up() && port_is_up();
  return fits ? found : nullptr;
}

// True: it is tried again later. False: no more, and the request has its status.
bool QueuePair::must_wait(WorkRequest& request, uint8_t& left, ibv_wc_status when_over) {
  retry_at = fabric().now + kBetweenRetries;
  if (when_over == IBV_WC_RNR_RETRY_EXC_ERR && attributes.rnr_retry == kEndless) return true;
  if (left == 0) {
    request.status = when_over;
    return false;
  }
  --left;
  return true;
}

// False: it has to wait.
bool QueuePair::write(WorkRequest& request) {
  QueuePair* const to = peer();
  if (to == nullptr) return !must_wait(request, retries_left, IBV_WC_RETRY_EXC_ERR);
  retries_left = attributes.retry_cnt;
  const Outcome outcome = faults().execute && !is_own_peer() ? faults().execute(request.request) : Outcome();
  if (outcome.waits) {
    retry_at = fabric().now + kBetweenRetries;
    return false;
  }
  const bool immediate = request.request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  if (immediate && (to->receives.empty() || outcome.no_receive))
    return !must_wait(request, receiver_retries_left, IBV_WC_RNR_RETRY_EXC_ERR);
  receiver_retries_left = attributes.rnr_retry;
  request.status = outcome.status;
  if (request.status != IBV_WC_SUCCESS && !outcome.lands) return true;
  auto message = std::make_shared<Message>();
  if (!gather(*this, request, message->data)) {
    request.status = IBV_WC_LOC_PROT_ERR;
    return true;
  }
  message->to = request.request.wr.rdma.remote_addr;
  if (to->attributes.path_mtu != attributes.path_mtu && message->data.size() > size_t{128} << to->attributes.path_mtu) {
    request.status = IBV_WC_REM_INV_REQ_ERR;
    to->enter_error();
    return true;
  }
  if (!message->data.empty()) {
    message->region = writable(*to, request.request.wr.rdma.rkey, message->to, message->data.size());
    if (message->region == nullptr) {
      request.status = IBV_WC_REM_ACCESS_ERR;
      to->enter_error();
      return true;
    }
  }
  cut(*message);
  if (immediate) {
    message->receive = to->receives.front().id;
    message->immediate = request.request.imm_data;
    to->receives.pop_front();
  }
  request.message = message;
  to->let_in(message);
  return true;
}

void QueuePair::send_datagram(WorkRequest& request) {
  Datagram datagram;
  if (!gather(*this, request, datagram.payload)) {
    request.status = IBV_WC_LOC_PROT_ERR;
    return;
  }
  Fabric& all = fabric();
  const auto& way = request.request.wr.ud;
  datagram.from = qp_num;
  datagram.to = way.remote_qpn;
  datagram.key = way.remote_qkey;
  datagram.route = static_cast<const AddressHandle*>(way.ah)->route;
  request.status = faults().datagram ? faults().datagram() : IBV_WC_SUCCESS;
  if (!port_is_up() || request.status != IBV_WC_SUCCESS) return;
  const int copies = all.chance(all.script.lost_permille) ? 0 : all.chance(all.script.repeated_permille) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    datagram.due = all.now + 1 + all.pick(all.script.overtaking + 1);
    all.datagrams.push_back(datagram);
  }
}

ibv_wc QueuePair::completion(uint64_t id, ibv_wc_status status) const {
  ibv_wc done{};
  done.wr_id = id;
  done.status = status;
  done.qp_num = qp_num;
  done.vendor_err = status == IBV_WC_SUCCESS ? 0 : 0x51;
  return done;
}

void QueuePair::report(const WorkRequest& request, ibv_wc_status status) {
  ++unreported;
  const bool wanted = signal_all || (request.request.send_flags & IBV_SEND_SIGNALED) != 0;
  if (!wanted && status == IBV_WC_SUCCESS) return;
  ibv_wc done = completion(request.request.wr_id, status);
  done.opcode = IBV_WC_RDMA_WRITE;
  send_queue().add(done, *this, std::exchange(unreported, 0), false);
}

bool QueuePair::complete_first() {
  if (executed == 0) return false;
  WorkRequest& first = requests.front();
  if (first.done_at > fabric().now) return false;
  if (first.message && first.message->lost) {  // the peer's queue pair broke before it was all there
    first.message.reset();
    first.status = IBV_WC_RETRY_EXC_ERR;
    first.done_at = fabric().now + kBetweenRetries * (attributes.retry_cnt + 1);
    return true;
  }
  if (first.message) first.message->acknowledged = true;
  const WorkRequest done = std::move(first);
  requests.pop_front();
  --executed;
  report(done, done.status);
  if (done.status == IBV_WC_SUCCESS) return true;
  if (qp_type == IBV_QPT_UD)
    state = IBV_QPS_SQE;  // it still receives
  else
    enter_error();
  return true;
}

bool QueuePair::flush() {
  const bool of_send = !requests.empty() && (receives.empty() || state == IBV_QPS_SQE || fabric().pick(2) == 0);
  if (of_send) {
    const WorkRequest done = std::move(requests.front());
    requests.pop_front();
    executed -= executed > 0 ? 1 : 0;
    report(done, IBV_WC_WR_FLUSH_ERR);
    return true;
  }
  if (receives.empty() || state == IBV_QPS_SQE) return false;
  const uint64_t id = receives.front().id;
  receives.pop_front();
  receive_queue().add(completion(id, IBV_WC_WR_FLUSH_ERR), *this, 1, true);
  return true;
}

}  // namespace ibcoll::fake_verbs
