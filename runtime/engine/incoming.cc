// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/incoming.h"

#include <fmt/format.h>

#include <cstring>

#include "runtime/machine/simulation.h"

namespace ibcoll {

// ---------------------------------------------------------------- for the task

void Incoming::announce(int peer, Bytes into, int called) noexcept {
  if (into.empty()) return;
  ++expected_;
  Channel* const c = state_.channel(peer);
  if (c && c->in.taken) [[unlikely]]
    return announce_taken(*c, into.size(), called);
  Message* const m = c ? state_.message() : nullptr;
  if (!m) return;
  c->called = called;
  m->data = into.data();
  m->bytes = into.size();
  c->in.announced.push(m);
  c->in.bytes_announced += m->bytes;
  m->advertised = state_.eager(m->bytes);
  if (c->in.unexpected.head) take_unexpected(*c);
  outgoing_.advertise(*c);
}

// Its message is where it lands already.
void Incoming::announce_taken(Channel& c, uint64_t bytes, int called) noexcept {
  c.called = called;
  c.in.taken = false;
  c.in.bytes_announced += bytes;
  c.in.bytes_landed += bytes;
  ++landed_;
}

void Incoming::serve(int peer, uint64_t bytes, int called) noexcept {
  Channel* const c = state_.channel(peer);
  if (!c) return;
  c->called = called;
  arrivals_.serve(*c, bytes, bytes > 0 && !state_.eager(bytes));
}

void Incoming::watch(int peer, int called) noexcept {
  Channel* const c = state_.channel(peer);
  if (!c) return;
  c->called = called;
  if (c->in.announced.head)
    c->in.watched = true;
  else
    landings_.push(c);
}

std::string Incoming::describe_landed() const { return fmt::format("({} of {} messages landed)", landed_, expected_); }

// ---------------------------------------------------------------- notes

void Incoming::on_advertisement(Channel& c, const Note& note, ConstBytes payload) noexcept {
  outgoing_.on_advertisement(c, note, payload);
  arrivals_.arrived(c);
}

void Incoming::on_eager(Channel& c, const Note& note, ConstBytes payload) noexcept {
  arrivals_.arrived(c);
  if (c.in.announced.head && !c.in.unexpected.head)
    take_eager(c, note, payload);
  else
    keep_unexpected(c, note, payload);
}

void Incoming::on_spill(Channel& c, const Note& note, ConstBytes payload) noexcept {
  arrivals_.arrived(c);
  if (c.in.announced.head && !c.in.unexpected.head)
    on_fragment(c, note, payload);
  else
    keep_unexpected(c, note, payload);
}

void Incoming::keep_unexpected(Channel& c, const Note& note, ConstBytes payload) noexcept {
  if (EarlyMessage* const early = state_.team().engine().early_messages().copy(c.peer, note, payload))
    return c.in.unexpected.push(early);
  state_.health().fail(error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory to keep {} bytes that rank {} sent early",
                             state_.team().rank(), payload.size(), c.peer));
}

void Incoming::take_unexpected(Channel& c) noexcept {
  while (c.in.unexpected.head && c.in.announced.head) {
    EarlyMessage* const early = c.in.unexpected.pop();
    simulate_copy_of(early->payload().data(), early->payload().size());
    if (static_cast<NoteKind>(early->note.kind) == NoteKind::kSpill)
      on_fragment(c, early->note, early->payload());
    else
      take_eager(c, early->note, early->payload());
    state_.team().engine().early_messages().recycle(early);
  }
}

void Incoming::take_eager(Channel& c, const Note& note, ConstBytes payload) noexcept {
  Message* const m = c.in.announced.head;
  if (m->bytes != note.bytes || payload.size() > m->bytes - m->moved) {
    state_.mismatch(c.peer, note.bytes, m->bytes, "bytes of a message from it");
    return;
  }
  if (!landing_is_simulated(m->data + m->moved, payload.data()))
    std::memcpy(m->data + m->moved, payload.data(), payload.size());
  c.credit.took(payload.size());
  land(c, payload.size());
}

void Incoming::on_fragment(Channel& c, const Note& note, ConstBytes payload) noexcept {
  Message* const m = c.in.announced.head;
  if (!m || m->bytes != note.bytes || payload.size() > m->bytes - m->moved) {
    state_.mismatch(c.peer, note.bytes, m ? m->bytes : 0, "bytes of a message from it");
    return;
  }
  // A peer that the kernel does not let write to the region sends fragments.
  const bool refused = m->region.key != 0 && static_cast<NoteKind>(note.kind) == NoteKind::kFragment;
  if (refused && !state_.may_access({m->data + m->moved, payload.size()}, Access::kWrite)) return;
  if (!landing_is_simulated(m->data + m->moved, payload.data()))
    std::memcpy(m->data + m->moved, payload.data(), payload.size());
  if (static_cast<NoteKind>(note.kind) == NoteKind::kSpill) c.credit.took_spilled(payload.size());
  if (m->moved + payload.size() == m->bytes && !conceal(c.peer, *m))
    return state_.mismatch(c.peer, note.bytes, m->bytes, "bytes of a message that it writes twice");
  land(c, payload.size());
}

void Incoming::on_put(Channel& c, const Note& note) noexcept {
  Message* const m = c.in.announced.head;
  if (!m || m->region.key == 0 || note.bytes > m->bytes - m->moved) {
    state_.mismatch(c.peer, note.bytes, m ? m->bytes - m->moved : 0, "bytes of a message from it");
    return;
  }
  if (m->moved + note.bytes == m->bytes && !rest(c.peer, *m)) {
    state_.health().suspect(error(IBCOLL_ERR_MISMATCH,
                                  "rank {}: rank {} writes once more to memory where its message has landed",
                                  state_.team().rank(), c.peer));
    return;
  }
  land(c, note.bytes);
}

// The next bytes of the oldest announced message.
void Incoming::land(Channel& c, uint64_t bytes) noexcept {
  Message* const m = c.in.announced.head;
  m->moved += bytes;
  c.in.bytes_landed += bytes;
  if (m->moved == m->bytes) {
    c.in.announced.pop();
    if (c.in.unadvertised == m) c.in.unadvertised = m->next;
    c.in.not_advertised += !m->advertised;
    ++landed_;
    state_.recycle(m);
    trace_.landed(c.times);
    if (c.in.watched && !c.in.announced.head) {
      c.in.watched = false;
      landings_.push(&c);
    }
  }
  outgoing_.report_consumed(c);
}

// ---------------------------------------------------------------- the end

bool Incoming::conceal(int peer, Message& announced) noexcept {
  if (announced.region.key == 0) return true;
  if (!state_.links().conceal(peer, announced.region)) return false;
  announced.region.key = 0;
  return true;
}

// Of memory that is exposed to this peer again: buffers of a persistent request, and long scratch memory. Shorter scratch
// memory may become the program's after the call.
bool Incoming::rest(int peer, Message& announced) noexcept {
  const bool comes_again = state_.is_scratch(announced.data) ? state_.is_long_scratch(announced.data) : keeps_rights_;
  if (!comes_again) return conceal(peer, announced);
  if (!state_.links().rest(peer, announced.region)) return false;
  announced.region.key = 0;
  return true;
}

bool Incoming::conceal() noexcept {
  bool all = true;
  for (Channel* c = state_.first(); c; c = c->next_peer)
    for (Message* m = c->in.announced.head; m; m = m->next) all = conceal(c->peer, *m) && all;
  return all;
}

std::string Incoming::writers() const {
  std::string writers;
  for (const Channel* c = state_.first(); c; c = c->next_peer)
    for (const Message* m = c->in.announced.head; m; m = m->next)
      if (m->region.key != 0) {
        writers += fmt::format("{}{}", writers.empty() ? "" : ", ", c->peer);
        break;
      }
  return writers;
}

void Incoming::close() noexcept {
  Engine& engine = state_.team().engine();
  for (Channel* c = state_.first(); c; c = c->next_peer) {
    engine.early_messages().recycle(c->in.unexpected);
    const uint64_t eager = c->credit.bytes_taken(), spilled = c->credit.spilled_taken();
    if (eager + spilled == 0) continue;
    TeamCredit::Peer* const peer = state_.links().credit_of(c->link);
    if (peer && state_.links().credit().ended(*peer, state_.op(), eager, spilled)) engine.credit_is_due();
  }
}

}  // namespace ibcoll
