// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/verbs/receiver.h"

#include <fmt/format.h>

#include <cstring>

#include "runtime/base/log.h"

namespace ibcoll::verbs {

// False: it is ready as well, but its connection has to become so first.
inline bool Receiver::is_connected(Peer& peer) {
  if (!peer.connection.is(State::kGreeting) || !peer.connection.handshake.has_theirs) return true;
  local_.outbox.ready(peer);
  connector_.connected(peer);
  return false;
}

void Receiver::look_at_slots() {
  for (Peer* peer : local_.peers.with_queue_pair)
    if (peer->has_message()) {
      if (!is_connected(*peer)) return;  // the list may have changed
      local_.outbox.ready(*peer);
    }
}

size_t Receiver::take_from_slots(std::span<Event> events) {
  size_t count = 0;
  bool lacks_immediate = false;
  for (Peer* peer : local_.peers.with_queue_pair) {
    if (!peer->receiving.has_written()) continue;
    if (!peer->has_message()) {
      lacks_immediate = true;
      continue;
    }
    if (count == events.size() || !is_connected(*peer)) break;
    if (take_message(*peer, events[count])) ++count;
    if (peer->has_message()) local_.outbox.ready(*peer);
  }
  if (lacks_immediate) completions_.poll();  // of a put: it may be there as well
  return count;
}

bool Receiver::take_message(Peer& peer, Event& event) {
  if (!peer.has_message()) return false;
  SlotHeader header;
  if (!peer.receiving.has_unreleased()) local_.outbox.lend(&peer);
  const Slot& slot = peer.receiving.take_next(header);
  const uint64_t sequence = peer.receiving.handed_out();
  if (header.sequence != sequence || header.bytes > kSlotPayload) [[unlikely]] {
    recovery_.fail(peer, text_or(kNoText, [&] {
                     return fmt::format("its message {} came where message {} was due: a fault of ibcoll",
                                        header.sequence, sequence);
                   }));
    return false;
  }
  peer.sending.is_consumed(header.consumed);
  event.kind = Event::Kind::kMessage;
  event.peer = peer.rank;
  event.note = header.note;
  event.payload = {};
  switch (header.kind) {
    case SlotKind::kMessage:
      ++counters_.messages_received;
      counters_.bytes_received += header.bytes;
      event.payload = {slot.payload_of(header.bytes), header.bytes};
      return true;
    case SlotKind::kPut:
      ++counters_.puts_received;
      return true;
    case SlotKind::kSmallPut:
      return take_small_put(peer, header, slot.payload_of(header.bytes));
    case SlotKind::kDropped:
      report_dropped(peer);
      return false;
    case SlotKind::kRefused: {
      SlotHeader refused;
      if (header.bytes < sizeof refused) return false;
      std::memcpy(&refused, slot.payload_of(header.bytes), sizeof refused);
      sender_.report_refused(peer, refused.bytes, refused.address, "that rank has not exposed it");
      return false;
    }
    case SlotKind::kLeaving:
      peer.liveness.leave();
      return false;
  }
  return false;
}

// False: the peer has no right to write there, and is notified of that.
bool Receiver::take_small_put(Peer& peer, const SlotHeader& header, const std::byte* payload) {
  if (exposures_.write(peer, header, payload)) {
    ++counters_.puts_received;
    return true;
  }
  report_dropped(peer);
  if (peer.connection.ready() && peer.sending.has_slot())  // the word of a fault need not arrive
    sender_.send_own(peer, SlotKind::kRefused, std::as_bytes(std::span(&header, 1)));
  return false;
}

void Receiver::report_dropped(const Peer& peer) {
  ++counters_.puts_dropped;
  log(LogLevel::kWarning, "verbs: rank {} tried to write to memory of rank {} that was not exposed to it: not written",
      peer.rank, local_.rank);
}

}  // namespace ibcoll::verbs
