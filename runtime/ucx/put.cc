// SPDX-License-Identifier: BSD-3-Clause
// The sender's side of puts. Small ones are one eager message. Large ones are a rendezvous if UCX can read or write the
// peer's memory by RDMA and the memory can be pinned. Over TCP a rendezvous needs another round trip and is half as
// fast as eager messages (measured on loopback, 64 KB to 8 MB), and over shared memory it does not survive the death of
// a peer. There a large put is sent in fragments, an eager message each.
#include <cstring>
#include <new>

#include "runtime/ucx/large_put.h"
#include "runtime/ucx/transport.h"

namespace ibcoll::ucx {

namespace {

constexpr size_t kCopiedPutBytes = 8 * 1024;  // up to here a put is copied when it cannot leave at once
constexpr uint32_t kFragmentsInFlight = 4;    // of one peer
constexpr Time kSendingTimeout = 2'000'000'000;

}  // namespace

PutResult Transport::put(int rank, const RemoteRegion& to, std::span<const std::byte> from, const Note& note,
                         uint64_t token) {
  Peer* peer = ready_to_send(rank, 0);
  if (peer == nullptr) return PutResult::kBusy;
  outbox_.reserve_sent(puts_pending_);
  const PutHeader header{next_header(*peer, note), to.address, to.key, from.size(), 0};
  PutResult result = PutResult::kBusy;
  if (from.size() <= fragment_bytes_) {
    result = put_eager(*peer, header, from, token);
  } else if (rendezvous_) {
    result = put_by_rendezvous(*peer, header, from, token);
  } else {
    result = put_in_fragments(*peer, header, from, token);
  }
  if (result == PutResult::kBusy) return result;
  accepted(*peer, 0);
  if (result == PutResult::kPending) {
    ++peer->puts_pending;
    ++puts_pending_;
  }
  ++counters_.puts_sent;
  counters_.bytes_sent += from.size();
  if (peer->large_first != nullptr) post_fragments(*peer);
  return result;
}

PutResult Transport::put_eager(Peer& peer, const PutHeader& header, std::span<const std::byte> from, uint64_t token) {
  if (from.size() <= kImmediateBytes) {
    if (post_now(peer, {kPutId, &header, sizeof(header), from, UCP_AM_SEND_FLAG_EAGER})) return PutResult::kDone;
    if (peer.state != Peer::State::kConnected) return PutResult::kBusy;
  }
  if (from.size() > kCopiedPutBytes) return put_whole(peer, header, from, token, UCP_AM_SEND_FLAG_EAGER);
  Buffer* buffer = pool_.take(sizeof(header) + from.size());
  if (buffer == nullptr) return PutResult::kBusy;
  buffer->peer = &peer;
  buffer->use = Buffer::Use::kMessage;
  std::byte* copy = buffer->data() + sizeof(header);
  std::memcpy(buffer->data(), &header, sizeof(header));
  if (!from.empty()) std::memcpy(copy, from.data(), from.size());
  const Outgoing out{kPutId, buffer->data(), sizeof(header), {copy, from.size()}, UCP_AM_SEND_FLAG_EAGER};
  const Posted posted = post(peer, out, buffer);
  if (posted == Posted::kPending) unsent_messages_.fetch_add(1, std::memory_order_relaxed);
  return posted == Posted::kRefused ? PutResult::kBusy : PutResult::kDone;
}

PutResult Transport::put_by_rendezvous(Peer& peer, const PutHeader& header, std::span<const std::byte> from,
                                       uint64_t token) {
  Registration* const source = pin(from);
  if (source == nullptr) return put_in_fragments(peer, header, from, token);
  return put_whole(peer, header, from, token, UCP_AM_SEND_FLAG_RNDV, source);
}

// One active message from the caller's memory, which `source`, if any, keeps pinned meanwhile.
PutResult Transport::put_whole(Peer& peer, const PutHeader& header, std::span<const std::byte> from, uint64_t token,
                               unsigned flags, Registration* source) {
  Buffer* buffer = pool_.take(sizeof(header));
  if (buffer == nullptr) {
    unpin(source);
    return PutResult::kBusy;
  }
  buffer->peer = &peer;
  buffer->use = Buffer::Use::kPut;
  buffer->source = source;
  buffer->token = token;
  std::memcpy(buffer->data(), &header, sizeof(header));
  switch (post(peer, {kPutId, buffer->data(), sizeof(header), from, flags}, buffer)) {
    case Posted::kDone:
      return PutResult::kDone;
    case Posted::kPending:
      return PutResult::kPending;
    case Posted::kRefused:
      break;
  }
  return PutResult::kBusy;
}

// Queues the put; post_fragments() sends it, now and in later polls.
PutResult Transport::put_in_fragments(Peer& peer, const PutHeader& header, std::span<const std::byte> from,
                                      uint64_t token) {
  Buffer* whole = pool_.take(sizeof(LargePut));
  if (whole == nullptr) return PutResult::kBusy;
  whole->peer = &peer;
  whole->use = Buffer::Use::kLargePut;
  whole->token = token;
  whole->next = nullptr;
  new (whole->data()) LargePut{header, from.data(), 0, false};
  (peer.large_first == nullptr ? peer.large_first : peer.large_last->next) = whole;
  peer.large_last = whole;
  return PutResult::kPending;
}

void Transport::post_fragments(Peer& peer) {
  while (peer.large_first != nullptr && peer.fragments_in_flight < kFragmentsInFlight &&
         peer.state == Peer::State::kConnected) {
    Buffer* whole = peer.large_first;
    LargePut& put = LargePut::in(whole);
    Buffer* fragment = pool_.take(sizeof(PutHeader));
    if (fragment == nullptr) break;
    fragment->peer = &peer;
    fragment->use = Buffer::Use::kFragment;
    fragment->whole = whole;
    put.header.message.consumed = peer.receive.consumed();
    std::memcpy(fragment->data(), &put.header, sizeof(put.header));
    const size_t bytes = std::min<size_t>(fragment_bytes_, put.header.total - put.header.offset);
    const Posted posted = post(
        peer,
        {kPutId, fragment->data(), sizeof(PutHeader), {put.source + put.header.offset, bytes}, UCP_AM_SEND_FLAG_EAGER},
        fragment);
    if (posted == Posted::kRefused) break;
    if (posted == Posted::kPending) {
      ++put.fragments;
      ++peer.fragments_in_flight;
    }
    put.header.offset += bytes;
    if (put.header.offset < put.header.total) continue;
    put.all_posted = true;
    peer.large_first = whole->next;
    if (put.finished()) finish_large(whole);
  }
  if (peer.large_first != nullptr && !peer.has_fragments) {
    peer.has_fragments = true;
    with_fragments_.push_back(&peer);
  }
}

void Transport::post_fragments() {
  size_t kept = 0;
  for (size_t i = 0; i < with_fragments_.size(); ++i) {
    Peer* peer = with_fragments_[i];
    post_fragments(*peer);
    peer->has_fragments = peer->large_first != nullptr;
    if (peer->has_fragments) with_fragments_[kept++] = peer;
  }
  with_fragments_.resize(kept);
}

void Transport::fragment_sent(Peer& peer, Buffer* whole) {
  --peer.fragments_in_flight;
  peer.send_deadline = 0;
  LargePut& put = LargePut::in(whole);
  --put.fragments;
  if (put.finished()) finish_large(whole);
}

void Transport::finish_large(Buffer* whole) {
  put_sent(*whole->peer, whole->token);
  pool_.give(whole);
}

void Transport::put_sent(Peer& peer, uint64_t token) {
  --peer.puts_pending;
  --puts_pending_;
  peer.send_deadline = 0;
  outbox_.sent(peer.rank, token);
}

// UCX reads what TCP has not taken yet from the caller's memory; it returns that only when the connection is closed.
void Transport::want_back(int rank) {
  Peer* const peer = rank < 0 || rank >= size_ ? nullptr : peers_[static_cast<size_t>(rank)].get();
  if (peer == nullptr || peer->puts_pending == 0 || peer->state != Peer::State::kConnected) return;
  if (peer->send_deadline == 0)
    peer->send_deadline = now() + kSendingTimeout;
  else if (now() > peer->send_deadline)
    cut(*peer, UCS_ERR_TIMED_OUT);
}

// The peer has failed: nothing more is posted, and the sources are the caller's again.
void Transport::drop_fragments(Peer& peer) {
  while (Buffer* whole = peer.large_first) {
    peer.large_first = whole->next;
    LargePut& put = LargePut::in(whole);
    put.all_posted = true;
    if (put.finished()) finish_large(whole);
  }
}

}  // namespace ibcoll::ucx
