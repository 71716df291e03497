// SPDX-License-Identifier: BSD-3-Clause
// The sender's side: messages, puts, and the returning of credit.
#include <cstring>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/ucx/transport.h"

namespace ibcoll::ucx {

namespace {

constexpr int kLastPasses = 1000;

ucp_request_param_t request_param(unsigned flags) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.flags = flags;
  param.memory_type = UCS_MEMORY_TYPE_HOST;
  return param;
}

}  // namespace

// nullptr: the peer has failed, or there is no credit now.
Peer* Transport::ready_to_send(int rank, size_t bytes) {
  Peer* peer = find_or_make(rank);
  if (peer == nullptr) return nullptr;
  if (peer->state == Peer::State::kFailed && peer->left) report_failure(*peer, {});
  if (peer->state == Peer::State::kNew) connect(*peer);
  if (peer->state != Peer::State::kConnected) return nullptr;
  if (!peer->send.has_room(bytes)) {
    ++counters_.no_credit;
    return nullptr;
  }
  return peer;
}

MessageHeader Transport::next_header(const Peer& peer, const Note& note) const {
  MessageHeader header;
  header.job = job_;
  header.sender = static_cast<uint32_t>(rank_);
  header.sequence = peer.send.next();
  header.consumed = peer.receive.consumed();
  header.note = note;
  return header;
}

void Transport::accepted(Peer& peer, size_t window_bytes) {
  peer.send.take(window_bytes);
  peer.reported_consumed = peer.receive.consumed();
  peer.bytes_consumed = 0;
}

// True: UCX has taken all of it, and the sources are reusable.
bool Transport::post_now(Peer& peer, const Outgoing& out) {
  ucp_request_param_t param = request_param(out.flags);
  param.op_attr_mask |= UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL;
  const ucs_status_ptr_t request = ucp_am_send_nbx(peer.endpoint, out.id, out.header, out.header_bytes,
                                                   out.payload.data(), out.payload.size(), &param);
  if (request == nullptr) return true;
  if (UCS_PTR_IS_ERR(request)) {
    if (const ucs_status_t status = UCS_PTR_STATUS(request); status != UCS_ERR_NO_RESOURCE) refused(peer, status);
    return false;
  }
  // Not expected of FORCE_IMM_CMPL. The sources may be on the stack, so it must not stay pending.
  log(LogLevel::kError, "rank {}: ucx: an immediate send to rank {} stays pending: a fault of UCX", rank_, peer.rank);
  ucp_request_free(request);
  broken(peer, UCS_ERR_IO_ERROR);
  return false;
}

// The buffer returns to the pool as soon as UCX does not need it any more.
Transport::Posted Transport::post(Peer& peer, const Outgoing& out, Buffer* buffer) {
  ucp_request_param_t param = request_param(out.flags);
  param.op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = &Transport::on_sent;
  param.user_data = buffer;
  if (buffer->source != nullptr) {
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
    param.memh = memory_of(*buffer->source);
  }
  const ucs_status_ptr_t request = ucp_am_send_nbx(peer.endpoint, out.id, out.header, out.header_bytes,
                                                   out.payload.data(), out.payload.size(), &param);
  if (request != nullptr && !UCS_PTR_IS_ERR(request)) {
    buffer->with_ucx = true;
    return Posted::kPending;
  }
  give_back(buffer);
  if (request == nullptr) return Posted::kDone;
  refused(peer, UCS_PTR_STATUS(request));
  return Posted::kRefused;
}

void Transport::give_back(Buffer* buffer) {
  unpin(std::exchange(buffer->source, nullptr));
  pool_.give(buffer);
}

void Transport::on_sent(void* request, ucs_status_t status, void* user_data) {
  auto* buffer = static_cast<Buffer*>(user_data);
  Peer& peer = *buffer->peer;
  Transport& self = *peer.transport;
  buffer->with_ucx = false;
  self.sent(*buffer);
  self.give_back(buffer);
  ucp_request_free(request);
  if (status != UCS_OK) self.broken(peer, status);
}

// Also when the peer failed: the source is the caller's again.
void Transport::sent(Buffer& buffer) {
  Peer& peer = *buffer.peer;
  if (buffer.use == Buffer::Use::kMessage) unsent_messages_.fetch_sub(1, std::memory_order_relaxed);
  if (buffer.use == Buffer::Use::kControl) peer.control_in_flight = false;
  if (buffer.use == Buffer::Use::kPut) put_sent(peer, buffer.token);
  if (buffer.use == Buffer::Use::kFragment) fragment_sent(peer, buffer.whole);
}

// For a peer to which a connection was not made. What UCX sends by other connections to it is dropped when UCX makes
// progress, as these take everything. The rest waits without end for the connection that was not made, and UCX reads
// none of it.
void Transport::leave_to_ucx(Peer& peer) {
  for (int i = 0; i < kLastPasses && worker_->progress(); ++i) {
  }
  pool_.for_each([&](Buffer& buffer) {
    if (buffer.peer == &peer && std::exchange(buffer.with_ucx, false)) sent(buffer);
  });
  worker_->abandon();
  peer.endpoint = nullptr;
}

bool Transport::send(int rank, const Note& note, std::span<const std::byte> payload) {
  if (payload.size() > kSlotBytes) {
    log(LogLevel::kError, "rank {}: ucx: send of {} bytes to rank {}: a slot has {}", rank_, payload.size(), rank,
        kSlotBytes);
    return false;
  }
  Peer* peer = ready_to_send(rank, payload.size());
  if (peer == nullptr) return false;
  const MessageHeader header = next_header(*peer, note);
  const Outgoing direct{kMessageId, &header, sizeof(header), payload, UCP_AM_SEND_FLAG_EAGER};
  bool done = payload.size() <= kImmediateBytes && post_now(*peer, direct);
  if (!done) {
    if (peer->state != Peer::State::kConnected) return false;
    Buffer* buffer = pool_.take(sizeof(header) + payload.size());
    if (buffer == nullptr) return false;
    buffer->peer = peer;
    buffer->use = Buffer::Use::kMessage;
    std::byte* copy = buffer->data() + sizeof(header);
    std::memcpy(buffer->data(), &header, sizeof(header));
    if (!payload.empty()) std::memcpy(copy, payload.data(), payload.size());
    const Outgoing copied{kMessageId, buffer->data(), sizeof(header), {copy, payload.size()}, UCP_AM_SEND_FLAG_EAGER};
    const Posted posted = post(*peer, copied, buffer);
    if (posted == Posted::kRefused) return false;
    if (posted == Posted::kPending) unsent_messages_.fetch_add(1, std::memory_order_relaxed);
  }
  accepted(*peer, payload.size());
  ++counters_.messages_sent;
  counters_.bytes_sent += payload.size();
  return true;
}

// False: another one is still in flight, or there is no memory: to be repeated.
bool Transport::send_control(Peer& peer, ControlHeader::Kind kind) {
  if (peer.state != Peer::State::kConnected) return true;  // no one to notify
  if (peer.control_in_flight) return false;
  const ControlHeader header{job_, static_cast<uint32_t>(rank_), peer.send.next(), peer.receive.consumed(), kind};
  if (!post_now(peer, {kControlId, &header, sizeof(header), {}, UCP_AM_SEND_FLAG_EAGER})) {
    if (peer.state != Peer::State::kConnected) return true;
    Buffer* buffer = pool_.take(sizeof(header));
    if (buffer == nullptr) return false;
    buffer->peer = &peer;
    buffer->use = Buffer::Use::kControl;
    std::memcpy(buffer->data(), &header, sizeof(header));
    const Posted posted = post(peer, {kControlId, buffer->data(), sizeof(header), {}, UCP_AM_SEND_FLAG_EAGER}, buffer);
    peer.control_in_flight = posted == Posted::kPending;
    if (posted == Posted::kRefused) return true;
  }
  peer.reported_consumed = header.consumed;
  peer.bytes_consumed = 0;
  ++counters_.credits_returned;
  return true;
}

void Transport::return_credit() {
  size_t kept = 0;
  for (Peer* peer : pending_credit_) {
    peer->credit_pending = credit_is_due(*peer) && !send_control(*peer, ControlHeader::Kind::kCredit);
    if (peer->credit_pending) pending_credit_[kept++] = peer;
  }
  pending_credit_.resize(kept);
}

}  // namespace ibcoll::ucx
