// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/comm/comm.h"

#include <fmt/format.h>

#include <cstring>

#include "runtime/engine/engine.h"
#include "runtime/engine/team.h"
#include "runtime/machine/copy.h"

namespace ibcoll {

Arena& arena_of(Comm& comm) noexcept { return comm.arena(); }

Comm::Comm(Team& team, uint32_t signature) noexcept
    : team_(team),
      placement_(team.placement()),
      rank_(team.rank()),
      size_(team.size()),
      signature_(signature),
      window_(team.window()),
      eager_limit_(team.engine().limits().eager_bytes) {}

void Comm::reset(uint32_t op, ibcoll_scheme_t scheme, bool uses_window) noexcept {
  op_ = op;
  scheme_ = scheme;
  uses_window_ = uses_window;
  if (uses_window) window_turn_ = window_->take_turn();
  wait_ = Wait();
  messages_expected_ = messages_landed_ = 0;
  puts_queued_ = puts_pending_ = 0;
  arrivals_ = nullptr;
  arrivals_tail_ = &arrivals_;
  landings_ = nullptr;
  landings_tail_ = &landings_;
  eager_scan_ = 1;
  free_messages_ = nullptr;
  arena_.reset();
  channels_.reset(arena_);
}

// ---------------------------------------------------------------- what algorithms call

void Comm::announce(int peer, Bytes into) noexcept {
  if (into.empty()) return;
  ++messages_expected_;
  Channel* const c = channel(peer);
  Message* const m = c ? message() : nullptr;
  if (!m) return;
  m->data = into.data();
  m->bytes = into.size();
  c->announced.push(m);
  ++c->announced_count;
  if (eager(m->bytes)) {
    m->told = true;  // nothing to tell
    while (c->unexpected && c->announced.head) {
      EarlyMessage* const early = c->unexpected;
      c->unexpected = early->next;
      if (!c->unexpected) c->unexpected_tail = &c->unexpected;
      take_eager(*c, early->note, ConstBytes(early->payload(), early->bytes));
      team_.engine().recycle(early);
    }
  } else if (!pump_advertisements(*c)) {
    retry_later(*c);
  }
}

void Comm::put(int peer, ConstBytes from) noexcept {
  if (from.empty() || !team_.failure().ok()) return;  // what has failed has nothing to send on
  Channel* const c = channel(peer);
  Message* const m = c ? message() : nullptr;
  if (!m) return;
  m->data = const_cast<std::byte*>(from.data());
  m->bytes = from.size();
  c->puts.push(m);
  ++c->put_count;
  ++puts_queued_;
  if (!pump_puts(*c)) retry_later(*c);
}

Comm::Awaiter Comm::received_from(int peer) noexcept {
  const Channel* const c = channels_.find(peer);
  return received_from(peer, c ? c->announced_count : 0);
}

// Who has given up may use its memory again: known before, it is not read; come meanwhile, what was read is nothing.
bool Comm::read(int local, uint64_t address, Bytes into) noexcept {
  int left = window_->left(local);
  if (left == 0) {
    if (Status status = window_->memory().read(window_->job_rank(local), address, into); !status.ok()) {
      team_.suspect(std::move(status));
      return false;
    }
    left = window_->left(local);
  }
  if (left != 0)
    team_.suspect(error(static_cast<ibcoll_status_t>(left), "rank {}: rank {} failed while its memory was read", rank_,
                        team_.team_rank(window_->job_rank(local))));
  return left == 0;
}

void Comm::copy(Bytes to, ConstBytes from) noexcept {
  if (!from.empty() && to.data() != from.data()) std::memcpy(to.data(), from.data(), from.size());
}

void Comm::copy_within(uint64_t total, Bytes to, ConstBytes from) noexcept {
  if (total <= last_level_cache_bytes() || from.size() < kLeastToStream) return copy(to, from);
  copy_streaming(to.data(), from.data(), from.size());
  fence_streaming();
}

std::byte* Comm::scratch(uint64_t bytes) noexcept {
  void* const memory = arena_.allocate(bytes);
  if (!memory)
    fail(error(IBCOLL_ERR_NO_MEMORY,
               "rank {}: {} bytes of scratch memory were refused; free memory or use smaller blocks", rank_, bytes));
  return static_cast<std::byte*>(memory);
}

void Comm::fail(Status status) noexcept { team_.fail(std::move(status)); }

// ---------------------------------------------------------------- waiting

bool Comm::satisfied(const Wait& wait) noexcept {
  switch (wait.kind) {
    case Wait::Kind::kNothing:
      return true;
    case Wait::Kind::kReady: {
      if (eager(wait.value) || wait.value == 0) return true;
      const Channel* const c = channels_.find(wait.peer);
      return c && c->advertisements.head && !c->puts.head;
    }
    case Wait::Kind::kArrival:
      return arrivals_ != nullptr || next_eager(*wait.blocks);
    case Wait::Kind::kReceived:
      return messages_landed_ == messages_expected_;
    case Wait::Kind::kReceivedFrom: {
      const Channel* const c = channels_.find(wait.peer);
      return wait.value == 0 || (c && c->landed >= wait.value);
    }
    case Wait::Kind::kLanding:
      return landings_ != nullptr;
    case Wait::Kind::kFlushed:
      return puts_queued_ == 0 && puts_pending_ == 0;
    case Wait::Kind::kStep:
      return window_->has_turn(window_turn_) && window_->try_next_step(wait.value);
    case Wait::Kind::kSoleStep:
      return window_->has_turn(window_turn_) && window_->try_next_sole_step(wait.value);
    case Wait::Kind::kPublished:
      return peer_published(wait.peer, wait.value);
    case Wait::Kind::kAllPublished:
      for (int local = window_->next(window_->rank()); local != window_->rank(); local = window_->next(local))
        if (!peer_published(local, wait.value)) return false;
      return true;
  }
  return false;
}

bool Comm::peer_published(int local, uint64_t parts) noexcept {
  if (!window_->published(local, parts)) return false;
  if (window_->digest(local) == window_->digest(window_->rank())) return true;
  other_call(team_.team_rank(window_->job_rank(local)));
  return false;
}

// The local peer that a wait for all of them is for just now; the own rank where none is behind any more.
int Comm::first_behind() const noexcept {
  int local = window_->next(window_->rank());
  while (local != window_->rank() && window_->published(local, NodeWindow::kWhole)) local = window_->next(local);
  return local;
}

int Comm::awaited_bell() const noexcept {
  if (messages_landed_ != messages_expected_ || puts_queued_ > 0 || puts_pending_ > 0) return kNoBell;
  switch (wait_.kind) {
    case Wait::Kind::kStep:
    case Wait::Kind::kSoleStep:
      return window_->has_turn(window_turn_) ? window_->bell(window_->behind()) : kOwnTurn;
    case Wait::Kind::kPublished:
      return window_->bell(wait_.peer);
    case Wait::Kind::kAllPublished:
      if (const int local = first_behind(); local != window_->rank()) return window_->bell(local);
      return kNoBell;
    default:
      return kNoBell;
  }
}

// Moves eager_scan_ to the next peer that needs no arrival.
bool Comm::next_eager(const ConstBlocks& blocks) noexcept {
  for (; eager_scan_ < size_; ++eager_scan_) {
    const int to = peer(eager_scan_);
    const uint64_t bytes = blocks.size(to);
    if (bytes != 0 && !eager(bytes)) continue;
    const Channel* const c = channels_.find(to);
    if (!c || !c->served) return true;
  }
  return false;
}

int Comm::take_arrival(const ConstBlocks& blocks) noexcept {
  if (Channel* const c = arrivals_) {
    arrivals_ = c->next_arrived;
    if (!arrivals_) arrivals_tail_ = &arrivals_;
    c->served = true;
    return c->peer;
  }
  next_eager(blocks);
  const int to = peer(eager_scan_++);
  if (Channel* const c = channel(to)) c->served = true;
  return to;
}

int Comm::take_landing() noexcept {
  Channel* const c = landings_;
  landings_ = c->next_landing;
  if (!landings_) landings_tail_ = &landings_;
  c->in_landings = false;
  return c->peer;
}

void Comm::mark_arrived(Channel& c) noexcept {
  if (c.arrived) return;
  c.arrived = true;
  if (c.served) return;
  c.next_arrived = nullptr;
  *arrivals_tail_ = &c;
  arrivals_tail_ = &c.next_arrived;
}

// ---------------------------------------------------------------- bookkeeping

Channel* Comm::channel(int peer) noexcept {
  Channel* const c = channels_.at(peer);
  if (!c)
    fail(error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory for the state of peer {}", rank_, peer));
  else
    c->comm = this;
  return c;
}

Message* Comm::message() noexcept {
  if (Message* const m = free_messages_) {
    free_messages_ = m->next;
    return new (m) Message();
  }
  Message* const m = arena_.create<Message>();
  if (!m) fail(error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory for one more message", rank_));
  return m;
}

bool Comm::eager(uint64_t bytes) const noexcept { return scheme_ != IBCOLL_SCHEME_ZERO_COPY && bytes <= eager_limit_; }

Note Comm::note(NoteKind kind, uint64_t bytes, uint32_t index) const noexcept {
  return {team_.epoch(),
          bytes,
          op_,
          signature_,
          team_.completed(),
          static_cast<uint16_t>(kind),
          static_cast<uint16_t>(index)};
}

void Comm::retry_later(Channel& c) noexcept {
  if (c.blocked) return;
  c.blocked = true;
  team_.engine().retry(c);
}

}  // namespace ibcoll
