// SPDX-License-Identifier: BSD-3-Clause
// The receiver's side: UCX's handlers fill the peers' windows, and poll() empties these in order.
#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/ucx/transport.h"

namespace ibcoll::ucx {

using Entry = ReceiveWindow::Entry;

// nullptr: not of this job, or of a peer that has failed.
Peer* Transport::sender_of(const void* header, size_t header_bytes, size_t expected_bytes) {
  uint64_t job = 0;
  uint32_t sender = 0;
  static_assert(offsetof(MessageHeader, job) == offsetof(ControlHeader, job));
  static_assert(offsetof(MessageHeader, sender) == offsetof(ControlHeader, sender));
  if (header_bytes == expected_bytes) {
    const auto* bytes = static_cast<const std::byte*>(header);
    std::memcpy(&job, bytes + offsetof(MessageHeader, job), sizeof(job));
    std::memcpy(&sender, bytes + offsetof(MessageHeader, sender), sizeof(sender));
  }
  if (header_bytes != expected_bytes || job != job_ || sender >= static_cast<uint32_t>(size_)) {
    ++counters_.dropped;
    log(LogLevel::kWarning, "rank {}: ucx: dropped a message that is not of this job (header of {} bytes, sender {})",
        rank_, header_bytes, sender);
    return nullptr;
  }
  Peer* peer = nullptr;
  try {
    peer = find_or_make(static_cast<int>(sender));
  } catch (const std::bad_alloc&) {  // this is a callback of UCX, and its message is lost
    unmade_ = static_cast<int>(sender);
  }
  if (peer == nullptr || peer->state == Peer::State::kFailed) return nullptr;
  if (peer->state == Peer::State::kNew &&
      std::find(unconnected_.begin(), unconnected_.end(), peer) == unconnected_.end()) {
    unconnected_.push_back(peer);
  }
  if (peer->receive.received() == 0) has_new_sockets_ = sockets_ != nullptr;  // this came through a socket of its own
  return peer;
}

// Takes the credit that the header returns, and finds the message's entry in the window.
Entry* Transport::find_entry(Peer& peer, const MessageHeader& header) {
  peer.send.consumed(header.consumed);
  if (!peer.receive.make_room(header.sequence)) {  // without this message the later ones cannot be handed out
    refused(peer, UCS_ERR_NO_MEMORY);
    return nullptr;
  }
  Entry* entry = peer.receive.find(header.sequence);
  if (entry != nullptr && entry->state <= Entry::State::kLanding) return entry;
  ++counters_.dropped;
  log(LogLevel::kWarning, "rank {}: ucx: dropped message {} of rank {}, which is beyond its credit or came before",
      rank_, header.sequence, peer.rank);
  return nullptr;
}

void Transport::set_state(Peer& peer, uint32_t sequence, Entry::State state) {
  peer.receive.set_state(sequence, state);
  if (peer.has_message()) outbox_.ready(peer);
}

ucs_status_t Transport::on_message(void* argument, const void* raw, size_t header_bytes, void* data, size_t bytes,
                                   const ucp_am_recv_param_t* param) {
  auto& self = *static_cast<Transport*>(argument);
  Peer* peer = self.sender_of(raw, header_bytes, sizeof(MessageHeader));
  if (peer == nullptr) return UCS_OK;
  MessageHeader header;
  std::memcpy(&header, raw, sizeof(header));
  if (bytes > kSlotBytes || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
    ++self.counters_.dropped;
    self.broken(*peer, UCS_ERR_MESSAGE_TRUNCATED);
    return UCS_OK;
  }
  Entry* entry = self.find_entry(*peer, header);
  if (entry == nullptr || entry->state != Entry::State::kMissing) return UCS_OK;
  if (bytes > 0) {
    entry->buffer = self.pool_.take(bytes);
    if (entry->buffer == nullptr) {  // without this message the later ones of the peer cannot be handed out
      self.refused(*peer, UCS_ERR_NO_MEMORY);
      return UCS_OK;
    }
    std::memcpy(entry->buffer->data(), data, bytes);
  }
  entry->note = header.note;
  entry->bytes = bytes;
  ++self.counters_.messages_received;
  self.counters_.bytes_received += bytes;
  self.set_state(*peer, header.sequence, Entry::State::kReady);
  return UCS_OK;
}

ucs_status_t Transport::on_put(void* argument, const void* raw, size_t header_bytes, void* data, size_t bytes,
                               const ucp_am_recv_param_t* param) {
  auto& self = *static_cast<Transport*>(argument);
  Peer* peer = self.sender_of(raw, header_bytes, sizeof(PutHeader));
  if (peer == nullptr) return UCS_OK;
  PutHeader header;
  std::memcpy(&header, raw, sizeof(header));
  Entry* entry = self.find_entry(*peer, header.message);
  if (entry == nullptr) return UCS_OK;
  const bool rendezvous = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  const bool first = entry->state == Entry::State::kMissing;
  if (entry->rendezvous || (rendezvous && !first))
    return UCS_OK;  // two puts of one number: no rank of ibcoll sends that
  if (first) {
    entry->note = header.message.note;
    entry->bytes = header.total;
    self.set_state(*peer, header.message.sequence, Entry::State::kLanding);
  }
  Exposures::Exposure* exposure = self.writable(*peer, header, bytes);
  const bool whole = header.offset == 0 && bytes == header.total;
  if (exposure == nullptr || bytes > entry->bytes || (rendezvous && !whole)) {
    self.refuse(*peer, *entry);
  } else if (rendezvous) {
    entry->rendezvous = true;
    return self.land(*peer, header, *exposure, data, bytes) ? UCS_INPROGRESS : UCS_OK;
  } else if (bytes > 0) {
    std::memcpy(reinterpret_cast<void*>(header.address + header.offset), data, bytes);
  }
  self.fragment_landed(*peer, header.message.sequence, *entry, bytes);
  return UCS_OK;
}

// nullptr: this peer may not write all of the put, or the fragment is outside of it.
Exposures::Exposure* Transport::writable(const Peer& peer, const PutHeader& header, size_t bytes) {
  Exposures::Exposure* exposure = exposures_.find(header.key, peer.rank, header.address, header.total);
  const bool within = header.offset <= header.total && bytes <= header.total - header.offset;
  return exposure != nullptr && within && !exposure->concealing ? exposure : nullptr;
}

void Transport::refuse(Peer& peer, Entry& entry) {
  if (entry.refused) return;
  entry.refused = true;
  ++counters_.dropped;
  log(LogLevel::kWarning,
      "rank {}: ucx: dropped a put of rank {} ({} bytes): it names memory that is not exposed to it", rank_, peer.rank,
      entry.bytes);
}

void Transport::fragment_landed(Peer& peer, uint32_t sequence, Entry& entry, size_t bytes) {
  entry.bytes -= std::min<uint64_t>(bytes, entry.bytes);
  if (entry.bytes > 0) return;
  if (!entry.refused) ++counters_.puts_received;
  set_state(peer, sequence, entry.refused ? Entry::State::kDropped : Entry::State::kReady);
}

// Lets UCX receive a rendezvous put straight into the region. False: there is no memory, and UCX keeps the data.
bool Transport::land(Peer& peer, const PutHeader& header, Exposures::Exposure& exposure, void* descriptor,
                     size_t bytes) {
  Buffer* record = pool_.take(0);
  if (record == nullptr) {
    refused(peer, UCS_ERR_NO_MEMORY);
    return false;
  }
  ++exposure.landing;
  record->peer = &peer;
  record->use = Buffer::Use::kLanding;
  record->token = header.key;
  record->sequence = header.message.sequence;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.memory_type = UCS_MEMORY_TYPE_HOST;
  param.cb.recv_am = &Transport::on_landed;
  param.user_data = record;
  if (exposure.pinned != nullptr) {
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
    param.memh = memory_of(*exposure.pinned);
  }
  const ucs_status_ptr_t request =
      ucp_am_recv_data_nbx(worker_->handle(), descriptor, reinterpret_cast<void*>(header.address), bytes, &param);
  if (request == nullptr || UCS_PTR_IS_ERR(request)) landed(record, UCS_PTR_STATUS(request));
  return true;
}

void Transport::on_landed(void* request, ucs_status_t status, size_t, void* user_data) {
  auto* record = static_cast<Buffer*>(user_data);
  record->peer->transport->landed(record, status);
  ucp_request_free(request);
}

void Transport::landed(Buffer* record, ucs_status_t status) {
  Peer& peer = *record->peer;
  if (Exposures::Exposure* exposure = exposures_.find(record->token); exposure != nullptr) --exposure->landing;
  // After a failure the entry stays as it is: later messages must not be handed out over a gap.
  if (status == UCS_OK && peer.state != Peer::State::kFailed) {
    Entry& entry = *peer.receive.find(record->sequence);  // it is there: only this completes the entry of a rendezvous
    fragment_landed(peer, record->sequence, entry, entry.bytes);
  }
  pool_.give(record);
  if (status != UCS_OK) broken(peer, status);
}

ucs_status_t Transport::on_control(void* argument, const void* raw, size_t header_bytes, void*, size_t,
                                   const ucp_am_recv_param_t*) {
  auto& self = *static_cast<Transport*>(argument);
  Peer* peer = self.sender_of(raw, header_bytes, sizeof(ControlHeader));
  if (peer == nullptr) return UCS_OK;
  ControlHeader header;
  std::memcpy(&header, raw, sizeof(header));
  peer->send.consumed(header.consumed);
  switch (header.kind) {
    case ControlHeader::Kind::kCredit:
      break;
    case ControlHeader::Kind::kLeaving:
      if (peer->asked_all_received) break;  // asked twice: no rank of ibcoll does that
      peer->left = true;
      peer->expected_total = header.sequence;
      peer->asked_all_received = true;
      self.leaving_.push_back(peer);
      break;
    case ControlHeader::Kind::kAllReceived:
      peer->all_received = true;
      break;
  }
  return UCS_OK;
}

size_t Transport::poll(std::span<Event> events) {
  outbox_.take_back([this](Buffer* buffer) { pool_.give(buffer); });
  if (rendezvous_) memory_->registrations->collect();
  push();
  outbox_.reserve_lent(events.size());
  size_t count = 0;
  if (unmade_ >= 0 && !events.empty()) [[unlikely]] {
    static constexpr std::string_view kWhy = "ucx: no memory for its first message";
    events[count++] = {Event::Kind::kPeerFailed,
                       std::exchange(unmade_, -1),
                       {},
                       std::as_bytes(std::span(kWhy)),
                       lack_token(IBCOLL_ERR_NO_MEMORY)};
  }
  count += outbox_.hand_out(events.subspan(count),
                            [this](Peer& peer, Event& event) { return hand_out_message(peer, event); });
  if (!pending_credit_.empty()) return_credit();
  return count;
}

void Transport::push() {
  constexpr int kPasses = 4;  // UCX takes a batch from one socket in each
  for (int i = 0; i < kPasses; ++i) {
    const bool more = worker_->progress();
    // Also without progress here: earlier fragments may have left in another wait.
    if (!with_fragments_.empty()) post_fragments();
    if (!more || !outbox_.is_empty()) break;  // a pass that finds nothing costs a system call, too
  }
  serve_connections();
}

bool Transport::hand_out_message(Peer& peer, Event& event) {
  Entry entry;
  const bool found = peer.receive.pop(entry);
  if (found) event = Event{Event::Kind::kMessage, peer.rank, entry.note, {}, 0};
  if (found && entry.buffer != nullptr) {
    event.payload = {entry.buffer->data(), entry.bytes};
    outbox_.lend(entry.buffer);
    peer.bytes_consumed += static_cast<uint32_t>(entry.bytes);
  }
  if (!peer.credit_pending && credit_is_due(peer)) {
    peer.credit_pending = true;
    pending_credit_.push_back(&peer);
  }
  return found;
}

}  // namespace ibcoll::ucx
