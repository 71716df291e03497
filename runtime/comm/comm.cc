// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/comm/comm.h"

#include <cstring>
#include <new>
#include <utility>

#include "runtime/machine/copy.h"
#include "runtime/machine/simulation.h"

namespace ibcoll {

// ---------------------------------------------------------------- Comms of fewer ranks

Comm& Comm::on_node() noexcept {
  if (!backend_->on_node_) {
    const std::span<const int> ranks = placement_->ranks_of(placement_->node_of(team_rank(rank_)));
    backend_->on_node_ = &make(ranks.data(), window_ ? window_->rank() : 0, static_cast<int>(ranks.size()));
  }
  return *backend_->on_node_;
}

Comm& Comm::leaders() noexcept {
  if (!backend_->leaders_)
    backend_->leaders_ =
        &make(placement_->leaders().data(), placement_->node_of(team_rank(rank_)), placement_->node_count());
  return *backend_->leaders_;
}

Comm& Comm::among(std::span<const int> ranks) noexcept {
  auto* const team_ranks = static_cast<int*>(backend_->arena().allocate(ranks.size() * sizeof(int)));
  int self = 0;
  for (size_t i = 0; team_ranks && i < ranks.size(); ++i) {
    team_ranks[i] = team_rank(ranks[i]);
    if (ranks[i] == rank_) self = static_cast<int>(i);
  }
  return make(team_ranks, self, static_cast<int>(ranks.size()));
}

// On failure this Comm takes its place: what is asked of it has no effect any more.
Comm& Comm::make(const int* ranks, int rank, int size) noexcept {
  void* const memory = ranks ? backend_->arena().allocate(sizeof(Comm)) : nullptr;
  if (memory) return *new (memory) Comm(*backend_, *placement_, window_, ranks, rank, size);
  fail(error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory for a group of {} ranks", team_rank(rank_), size));
  return *this;
}

// ---------------------------------------------------------------- messages: not inline, as coroutines would grow

void Comm::announce(int peer, Bytes into) noexcept { backend_->announce(team_rank(peer), into, peer); }
void Comm::put_piece(int peer, ConstBytes from, uint64_t total) noexcept {
  backend_->put(team_rank(peer), from, total);
}
void Comm::serve(int peer, uint64_t bytes) noexcept { backend_->serve(team_rank(peer), bytes, peer); }
void Comm::watch(int peer) noexcept { backend_->watch(team_rank(peer), peer); }

// ---------------------------------------------------------------- local

void Comm::copy(Bytes to, ConstBytes from) noexcept {
  if (from.empty() || to.data() == from.data() || work_is_simulated(to.data(), from.data(), from.size())) return;
  std::memcpy(to.data(), from.data(), from.size());
}

void Comm::copy_when_idle(Bytes to, ConstBytes from) noexcept {
  if (!from.empty() && to.data() != from.data()) backend_->copy_when_idle(to, from);
}

void Comm::copy_within(uint64_t total, Bytes to, ConstBytes from) noexcept {
  if (Simulation::current || total <= last_level_cache_bytes() || from.size() < kLeastToStream) return copy(to, from);
  copy_streaming(to.data(), from.data(), from.size());
  fence_streaming();
}

std::byte* Comm::scratch(uint64_t bytes) noexcept {
  void* const memory = backend_->arena().allocate(bytes);
  if (!memory)
    fail(error(IBCOLL_ERR_NO_MEMORY,
               "rank {}: {} bytes of scratch memory were refused; free memory or use smaller blocks", team_rank(rank_),
               bytes));
  return static_cast<std::byte*>(memory);
}

void Comm::fail(Status status) noexcept { backend_->fail(std::move(status)); }
void Comm::mismatch(int peer, uint64_t theirs, uint64_t mine, const char* what) noexcept {
  backend_->mismatch(team_rank(peer), theirs, mine, what);
}

}  // namespace ibcoll
