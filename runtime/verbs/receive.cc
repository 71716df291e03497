// SPDX-License-Identifier: BSD-3-Clause
// Messages on their way in.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/base/log.h"
#include "runtime/verbs/transport.h"

namespace ibcoll::verbs {

void Transport::look_at_slots() {
  for (Peer* peer : active_)
    if (!peer->receiving.listed() && peer->receiving.has_next()) {
      mark_ready(*peer);
      if (peer->connection.is(State::kGreeting) && peer->connection.handshake.has_theirs) {
        connected(*peer);
        return;  // the list may have changed
      }
    }
}

void Transport::mark_ready(Peer& peer) {
  if (peer.receiving.enlist()) ready_.push_back(&peer);
}

size_t Transport::hand_out(std::span<Event> events) {
  size_t count = 0;
  for (; sent_first_ < sent_.size() && count < events.size(); ++sent_first_)
    events[count++] = {Event::Kind::kSent, sent_[sent_first_].peer, {}, {}, sent_[sent_first_].token};
  if (sent_first_ == sent_.size()) sent_.clear(), sent_first_ = 0;
  if (!failures_.empty()) [[unlikely]]
    count += hand_out_failures(events.subspan(count), true);
  count += hand_out_messages(events.subspan(count));
  if (!failures_.empty()) [[unlikely]]
    count += hand_out_failures(events.subspan(count), false);
  return count;
}

size_t Transport::hand_out_failures(std::span<Event> events, bool of_this_rank) {
  size_t count = 0;
  for (size_t i = 0; i < failures_.size() && count < events.size();) {
    Peer& peer = *failures_[i];
    const Liveness& liveness = peer.liveness;
    const bool lacks = liveness.lack() != IBCOLL_OK;
    if (of_this_rank != lacks || (!lacks && peer.receiving.has_next())) {  // the last words of a peer come first
      ++i;
      continue;
    }
    const auto why = std::as_bytes(std::span(liveness.failure()));
    events[count++] = {Event::Kind::kPeerFailed, peer.rank, {}, why, lack_token(liveness.lack())};
    failures_.erase(failures_.begin() + static_cast<ptrdiff_t>(i));
  }
  return count;
}

size_t Transport::hand_out_messages(std::span<Event> events) {
  size_t count = 0;
  while (count < events.size() && ready_first_ < ready_.size()) {
    Peer& peer = *ready_[ready_first_++];
    peer.receiving.delist();
    if (!peer.receiving.has_next()) continue;
    if (hand_out_message(peer, events[count])) ++count;
    if (peer.receiving.has_next()) mark_ready(peer);
  }
  if (ready_first_ == ready_.size() || ready_first_ > 1024) {
    ready_.erase(ready_.begin(), ready_.begin() + static_cast<ptrdiff_t>(ready_first_));
    ready_first_ = 0;
  }
  return count;
}

bool Transport::hand_out_message(Peer& peer, Event& event) {
  SlotHeader header;
  const Slot& slot = peer.receiving.take_next(header);
  const uint64_t sequence = peer.receiving.handed_out();
  lent_.push_back(&peer);
  if (header.sequence != sequence || header.bytes > kSlotPayload) {
    fail(peer,
         fmt::format("its message {} came where message {} was due: a fault of ibcoll", header.sequence, sequence));
    return false;
  }
  peer.sending.is_consumed(header.consumed);
  switch (header.kind) {
    case SlotKind::kMessage:
      ++counters_.messages_received;
      counters_.bytes_received += header.bytes;
      event = {Event::Kind::kMessage, peer.rank, header.note, {slot.payload_of(header.bytes), header.bytes}, 0};
      return true;
    case SlotKind::kPut:
      ++counters_.puts_received;
      event = {Event::Kind::kMessage, peer.rank, header.note, {}, 0};
      return true;
    case SlotKind::kSmallPut:
      event = {Event::Kind::kMessage, peer.rank, header.note, {}, 0};
      return take_small_put(peer, header, slot.payload_of(header.bytes));
    case SlotKind::kDropped:
      report_dropped(peer);
      return false;
    case SlotKind::kRefused: {
      SlotHeader refused;
      if (header.bytes < sizeof refused) return false;
      std::memcpy(&refused, slot.payload_of(header.bytes), sizeof refused);
      report_refused(peer, refused.bytes, refused.address, "that rank has not exposed it");
      return false;
    }
    case SlotKind::kLeaving:
      peer.liveness.leave();
      return false;
  }
  return false;
}

}  // namespace ibcoll::verbs
