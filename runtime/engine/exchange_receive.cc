// SPDX-License-Identifier: BSD-3-Clause
// What the notes of a collective do when they arrive.
#include "runtime/engine/exchange.h"

#include <cstring>

#include "runtime/engine/engine.h"
#include "runtime/engine/team.h"
#include "runtime/machine/simulation.h"

namespace ibcoll {

void Exchange::on_note(int peer, const Note& note, ConstBytes payload) noexcept {
  Channel* const c = channel(peer);
  if (!c) return;
  if (note.signature != signature_) {
    other_call(peer);
    return;
  }
  switch (static_cast<NoteKind>(note.kind)) {
    case NoteKind::kAnnounce:
      on_announce(*c, note, payload);
      break;
    case NoteKind::kEager:
      on_eager(*c, note, payload);
      break;
    case NoteKind::kSpill:
      on_spill(*c, note, payload);
      break;
    case NoteKind::kFragment:
      on_fragment(*c, note, payload);
      break;
    case NoteKind::kLanded:
      on_landed(*c, note);
      break;
    case NoteKind::kConsumed:
      c->credit.consumed(static_cast<uint32_t>(note.bytes));
      break;
    case NoteKind::kWanted:
      on_wanted(*c, note, payload);
      break;
    default:
      return;
  }
  if (!pump(*c)) retry_later(*c);
}

void Exchange::on_announce(Channel& c, const Note& note, ConstBytes payload) noexcept {
  Message* const m = message();
  if (!m || payload.size() != sizeof(RemoteRegion)) return;
  std::memcpy(&m->region, payload.data(), sizeof(RemoteRegion));
  m->bytes = note.bytes;
  c.advertisements.push(m);
  arrivals_.arrived(c);
}

void Exchange::on_eager(Channel& c, const Note& note, ConstBytes payload) noexcept {
  arrivals_.arrived(c);
  if (c.announced.head && !c.unexpected)
    take_eager(c, note, payload);
  else
    keep_unexpected(c, note, payload);
}

void Exchange::on_spill(Channel& c, const Note& note, ConstBytes payload) noexcept {
  arrivals_.arrived(c);
  if (c.announced.head && !c.unexpected)
    on_fragment(c, note, payload);
  else
    keep_unexpected(c, note, payload);
}

void Exchange::keep_unexpected(Channel& c, const Note& note, ConstBytes payload) noexcept {
  EarlyMessage* const early = team_.engine().early_message(c.peer, note, payload);
  if (!early) {
    fail(error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory to keep {} bytes that rank {} sent early", team_.rank(),
               payload.size(), c.peer));
    return;
  }
  early->next = nullptr;
  *c.unexpected_tail = early;
  c.unexpected_tail = &early->next;
}

void Exchange::take_unexpected(Channel& c) noexcept {
  while (c.unexpected && c.announced.head) {
    EarlyMessage* const early = c.unexpected;
    c.unexpected = early->next;
    if (!c.unexpected) c.unexpected_tail = &c.unexpected;
    const ConstBytes payload(early->payload(), early->bytes);
    if (static_cast<NoteKind>(early->note.kind) == NoteKind::kSpill)
      on_fragment(c, early->note, payload);
    else
      take_eager(c, early->note, payload);
    team_.engine().recycle(early);
  }
}

void Exchange::take_eager(Channel& c, const Note& note, ConstBytes payload) noexcept {
  Message* const m = c.announced.head;
  if (m->bytes != note.bytes || payload.size() > m->bytes - m->moved) {
    mismatch(c.peer, note.bytes, m->bytes, "bytes of a message from it");
    return;
  }
  if (!landing_is_simulated(m->data + m->moved, payload.data()))
    std::memcpy(m->data + m->moved, payload.data(), payload.size());
  c.credit.took(payload.size());
  land(c, payload.size());
}

void Exchange::on_fragment(Channel& c, const Note& note, ConstBytes payload) noexcept {
  Message* const m = c.announced.head;
  if (!m || m->bytes != note.bytes || payload.size() > m->bytes - m->moved) {
    mismatch(c.peer, note.bytes, m ? m->bytes : 0, "bytes of a message from it");
    return;
  }
  // A peer that the kernel does not let write to the region sends fragments.
  const bool refused = m->region.key != 0 && static_cast<NoteKind>(note.kind) == NoteKind::kFragment;
  if (refused && !may_access({m->data + m->moved, payload.size()}, Access::kWrite)) return;
  if (!landing_is_simulated(m->data + m->moved, payload.data()))
    std::memcpy(m->data + m->moved, payload.data(), payload.size());
  if (m->moved + payload.size() == m->bytes && !conceal(c.peer, *m))
    return mismatch(c.peer, note.bytes, m->bytes, "bytes of a message that it writes twice");
  land(c, payload.size());
}

void Exchange::on_landed(Channel& c, const Note& note) noexcept {
  Message* const m = c.announced.head;
  if (!m || m->region.key == 0 || note.bytes > m->bytes - m->moved) {
    mismatch(c.peer, note.bytes, m ? m->bytes - m->moved : 0, "bytes of a message from it");
    return;
  }
  if (m->moved + note.bytes == m->bytes && !conceal(c.peer, *m)) {
    team_.suspect(error(IBCOLL_ERR_MISMATCH, "rank {}: rank {} writes once more to memory where its message has landed",
                        team_.rank(), c.peer));
    return;
  }
  land(c, note.bytes);
}

// The next bytes of the oldest announced message.
void Exchange::land(Channel& c, uint64_t bytes) noexcept {
  Message* const m = c.announced.head;
  m->moved += bytes;
  c.bytes_landed += bytes;
  if (m->moved == m->bytes) {
    c.announced.pop();
    if (c.unadvertised == m) c.unadvertised = m->next;
    ++messages_landed_;
    recycle(m);
    trace_.landed(c.times);
    if (c.watched && !c.announced.head) {
      c.watched = false;
      landings_.push(c);
    }
  }
  if (!pump_consumed(c)) retry_later(c);
}

void Exchange::mismatch(int peer, uint64_t theirs, uint64_t mine, const char* what) noexcept {
  team_.suspect_call(
      peer, op_,
      error(IBCOLL_ERR_MISMATCH, "rank {} and rank {} do not fit together in {}: {} is {} there and {} here; {}",
            team_.rank(), peer, team_.describe_call(op_), what, theirs, mine, kSameCalls));
}

void Exchange::other_call(int peer) noexcept {
  team_.suspect_call(
      peer, op_,
      error(IBCOLL_ERR_MISMATCH,
            "rank {} is in {}, and rank {} in a call that differs in collective, algorithm, scheme, root, type, "
            "operation or a size that must agree; {}",
            team_.rank(), team_.describe_call(op_), peer, kSameCalls));
}

}  // namespace ibcoll
