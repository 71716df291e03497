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
    if (peer->has_message() && !outbox_.is_ready(*peer)) {
      outbox_.ready(*peer);
      if (peer->connection.is(State::kGreeting) && peer->connection.handshake.has_theirs) {
        connected(*peer);
        return;  // the list may have changed
      }
    }
}

bool Transport::hand_out_message(Peer& peer, Event& event) {
  if (!peer.has_message()) return false;
  SlotHeader header;
  const Slot& slot = peer.receiving.take_next(header);
  const uint64_t sequence = peer.receiving.handed_out();
  outbox_.lend(&peer);
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
