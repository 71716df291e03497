// SPDX-License-Identifier: BSD-3-Clause
// What Comm promises, on top of Exchange: ranks of a Comm become ranks of the team.
#include "runtime/comm/comm.h"

#include <cstring>

#include "runtime/engine/exchange.h"
#include "runtime/engine/team.h"
#include "runtime/machine/copy.h"
#include "runtime/machine/simulation.h"

namespace ibcoll {

Arena& arena_of(Comm& comm) noexcept { return comm.exchange_->arena(); }
CallStack& stack_of(Comm& comm) noexcept { return comm.exchange_->stack(); }

Comm& Comm::on_node() noexcept { return exchange_->on_node(); }
Comm& Comm::leaders() noexcept { return exchange_->leaders(); }
Comm& Comm::among(std::span<const int> ranks) noexcept { return exchange_->among(*this, ranks); }

void Comm::announce(int peer, Bytes into) noexcept { exchange_->announce(team_rank(peer), into, peer); }
void Comm::put_piece(int peer, ConstBytes from, uint64_t total) noexcept {
  exchange_->put(team_rank(peer), from, total);
}
void Comm::serve(int peer, uint64_t bytes) noexcept { exchange_->serve(team_rank(peer), bytes, peer); }
void Comm::watch(int peer) noexcept { exchange_->watch(team_rank(peer), peer); }

Comm::Awaiter Comm::received_from(int peer, uint64_t but) noexcept {
  const Channel* const c = exchange_->find(team_rank(peer));
  return {*this,
          {&waits::kReceivedFrom, team_rank(peer), c && c->bytes_announced > but ? c->bytes_announced - but : 0}};
}

bool Comm::satisfied(const Wait& wait) noexcept { return exchange_->satisfied(wait); }
void Comm::suspend(const Wait& wait) noexcept { exchange_->suspend(wait); }
int Comm::take_arrival() noexcept { return exchange_->take_arrival(); }
int Comm::take_landing() noexcept { return exchange_->take_landing(); }
int Comm::take_part(const Wait& wait) noexcept {
  return exchange_->has_landing() ? -1 : exchange_->peer_with_part(reinterpret_cast<const uint32_t*>(wait.value));
}

void Comm::lend(ConstBytes memory) noexcept { exchange_->lend(memory); }
bool Comm::begin_read(ReadAwaiter& read) noexcept { return exchange_->begin_read(read); }
bool Comm::before_publication() noexcept { return exchange_->before_publication(); }

void Comm::copy(Bytes to, ConstBytes from) noexcept {
  if (from.empty() || to.data() == from.data() || work_is_simulated(to.data(), from.data(), from.size())) return;
  std::memcpy(to.data(), from.data(), from.size());
}

void Comm::copy_when_idle(Bytes to, ConstBytes from) noexcept {
  if (!from.empty() && to.data() != from.data()) exchange_->copy_when_idle(to, from);
}

void Comm::copy_within(uint64_t total, Bytes to, ConstBytes from) noexcept {
  if (Simulation::current || total <= last_level_cache_bytes() || from.size() < kLeastToStream) return copy(to, from);
  copy_streaming(to.data(), from.data(), from.size());
  fence_streaming();
}

std::byte* Comm::scratch(uint64_t bytes) noexcept {
  void* const memory = exchange_->arena().allocate(bytes);
  if (!memory)
    fail(error(IBCOLL_ERR_NO_MEMORY,
               "rank {}: {} bytes of scratch memory were refused; free memory or use smaller blocks",
               exchange_->team().rank(), bytes));
  return static_cast<std::byte*>(memory);
}

void Comm::fail(Status status) noexcept { exchange_->fail(std::move(status)); }
void Comm::mismatch(int peer, uint64_t theirs, uint64_t mine, const char* what) noexcept {
  exchange_->mismatch(team_rank(peer), theirs, mine, what);
}
bool Comm::failed() const noexcept { return !exchange_->team().failure().ok(); }

}  // namespace ibcoll
