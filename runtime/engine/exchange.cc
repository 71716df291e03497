// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/engine/engine.h"
#include "runtime/engine/team.h"

namespace ibcoll {

Exchange::Exchange(Team& team, uint32_t signature) noexcept
    : CommBackend(signature),
      team_(team),
      trace_(team.engine(), team.window()),
      reads_(team),
      window_(team.window()),
      eager_limit_(team.engine().limits().eager_bytes),
      spill_share_(team.engine().limits().spill_bytes / static_cast<uint64_t>(std::max(1, team.size() - 1))),
      comm_(*this, team.placement(), window_, nullptr, team.rank(), team.size()) {
  channels_.reset(arena_);
}

void Exchange::reset(uint32_t op, ibcoll_scheme_t scheme, bool uses_window) noexcept {
  op_ = op;
  scheme_ = scheme;
  uses_window_ = uses_window;
  if (uses_window) window_ticket_ = window_->queue().take_ticket();
  wait_ = Wait();
  messages_expected_ = messages_landed_ = 0;
  puts_queued_ = puts_pending_ = 0;
  reads_.reset();
  asked_ = 0;
  idle_from_ = {};
  trace_.reset();
}

// All that lies in the arena.
void Exchange::forget_run() noexcept {
  forget_comms();
  arrivals_.clear();
  landings_.clear();
  free_messages_ = nullptr;
}

bool Exchange::resume() noexcept {
  if (trace_.in_wait()) [[unlikely]]
    trace_.resumed(wait_ended_by());
  wait_ = Wait();
  const bool ended = stack_.resume([this] { return !team_.failure().ok(); });
  if (ended && team_.failure().ok()) copy_slice(idle_from_.size());
  if (stack_.short_of_memory()) fail_for_memory();
  return ended;
}

void Exchange::fail_for_memory() noexcept {
  fail(error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory for a part of a collective", team_.rank()));
}

// ---------------------------------------------------------------- CommBackend

void Exchange::announce(int peer, Bytes into, int called) noexcept {
  if (into.empty()) return;
  ++messages_expected_;
  Channel* const c = channel(peer);
  Message* const m = c ? message() : nullptr;
  if (!m) return;
  c->called = called;
  m->data = into.data();
  m->bytes = into.size();
  c->announced.push(m);
  c->bytes_announced += m->bytes;
  m->advertised = eager(m->bytes);
  if (c->unexpected) take_unexpected(*c);
  if (!pump_advertisements(*c)) retry_later(*c);
}

void Exchange::put(int peer, ConstBytes piece, uint64_t total) noexcept {
  if (piece.empty() || !team_.failure().ok()) return;  // after a failure nothing is sent
  Channel* const c = channel(peer);
  Message* const m = c ? message() : nullptr;
  if (!m) return;
  m->data = const_cast<std::byte*>(piece.data());
  m->bytes = piece.size();
  m->total = total;
  c->puts.push(m);
  ++puts_queued_;
  if (!pump_puts(*c)) retry_later(*c);
}

void Exchange::serve(int peer, uint64_t bytes, int called) noexcept {
  Channel* const c = channel(peer);
  if (!c) return;
  c->called = called;
  arrivals_.serve(*c, bytes, bytes > 0 && !eager(bytes));
}

bool Exchange::moves_meanwhile(int peer) noexcept { return team_.transport(peer).moves_meanwhile(); }

void Exchange::watch(int peer, int called) noexcept {
  Channel* const c = channel(peer);
  if (!c) return;
  c->called = called;
  if (c->announced.head)
    c->watched = true;
  else
    landings_.push(*c);
}

void Exchange::copy_when_idle(Bytes to, ConstBytes from) noexcept {
  if (!idle_from_.empty() || from.size() <= Engine::kIdleSlice || !team_.engine().copies_when_idle(*this))
    return Comm::copy(to, from);
  idle_to_ = to;
  idle_from_ = from;
}

bool Exchange::copy_slice(uint64_t bytes) noexcept {
  const uint64_t now = std::min<uint64_t>(bytes, idle_from_.size());
  Comm::copy(idle_to_.first(now), idle_from_.first(now));
  idle_to_ = idle_to_.subspan(now);
  idle_from_ = idle_from_.subspan(now);
  return idle_from_.empty();
}

void Exchange::fail(Status status) noexcept { team_.fail(std::move(status)); }
bool Exchange::failed() const noexcept { return !team_.failure().ok(); }

// ---------------------------------------------------------------- waiting

bool Exchange::no_memory_for_step() noexcept {
  if (const Status& trouble = window_->memory().trouble(); !trouble.ok()) [[unlikely]]
    fail(error(trouble.code(), "rank {}: no memory for the node window of the team: {}", team_.rank(), trouble.text()));
  return false;
}

bool Exchange::peer_published(int local, uint64_t parts) noexcept {
  if (!window_->published(local, parts)) {
    lagging_ = local;
    return false;
  }
  if (window_->steps().digest(local) == window_->steps().digest(window_->rank())) return true;
  team_.check_own_line();
  if (window_->steps().plausible(local))
    other_call(team_rank_of(local));
  else
    fail(error(IBCOLL_ERR_SYSTEM,
               "rank {}: what rank {} has published in the node window is spoiled: a process has overwritten the "
               "node's shared "
               "memory by a write that is not ibcoll's; run the program with a memory checker",
               team_.rank(), team_rank_of(local)));
  return false;
}

int Exchange::peer_with_part(const uint32_t* parts) noexcept {
  for (int local = window_->next(window_->rank()); local != window_->rank(); local = window_->next(local))
    if (parts[local] > 0 && peer_published(local, parts[local])) return local;
  return -1;
}

// Of a wait in the node window: the local rank whose publication has ended it; -1: a message has.
int Exchange::wait_ended_by() noexcept {
  if (wait_.kind == WaitKind::kPartOrLanding) return take_part_or_landing(wait_);
  return awaits_step(wait_) ? window_->steps().lagging() : lagging_;
}

int Exchange::team_rank_of(int local) const noexcept { return team_.team_rank(window_->job_rank(local)); }

int Exchange::awaited_bell() const noexcept {
  if (!all_landed() || !all_flushed() || !polls_memory()) return kNoBell;
  return rule_of(wait_).bell(*this, wait_);
}

// ---------------------------------------------------------------- bookkeeping

Channel* Exchange::channel(int peer) noexcept {
  Channel* const c = channels_.at(peer);
  if (!c)
    fail(error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory for the state of peer {}", team_.rank(), peer));
  else
    c->exchange = this;
  return c;
}

Message* Exchange::message() noexcept {
  if (Message* const m = free_messages_) {
    free_messages_ = m->next;
    return new (m) Message();
  }
  Message* const m = arena_.create<Message>();
  if (!m) fail(error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory for one more message", team_.rank()));
  return m;
}

void Exchange::recycle(Message* message) noexcept {
  message->next = free_messages_;
  free_messages_ = message;
}

Note Exchange::note(NoteKind kind, uint64_t bytes, uint32_t index) const noexcept {
  return {team_.epoch(),
          bytes,
          op_,
          signature_,
          team_.completed(),
          static_cast<uint16_t>(kind),
          static_cast<uint16_t>(index)};
}

void Exchange::retry_later(Channel& c) noexcept {
  if (c.blocked) return;
  c.blocked = team_.engine().retry(c);
  if (!c.blocked)
    fail(error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory to retry a message to rank {}", team_.rank(), c.peer));
}

}  // namespace ibcoll
