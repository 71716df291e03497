// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/collectives/framework/circulant.h"

#include <atomic>
#include <bit>
#include <memory>
#include <new>

#include "runtime/comm/comm.h"

namespace ibcoll {
namespace {

// Finds the receive schedule of one rank: a depth-first search for ways to the rank, as sums of different skips, one
// for each round of a phase; the skip added first says which block comes that way. O(lg p) steps.
class Search {
 public:
  Search(int p, int q, const int* skip) noexcept : p_(p), q_(q), skip_(skip) {}

  // Fills schedule[0 .. q - 1] for rank r.
  void find(int r, int8_t* schedule) noexcept {
    for (int e = 0; e <= q_; ++e) below_[e] = static_cast<int8_t>(e - 1), above_[e] = static_cast<int8_t>(e + 1);
    highest_ = q_;
    target_ = int64_t{p_} + r;
    schedule_ = schedule;
    found_ = 0;
    const int base = base_block(r);
    unlink(base);
    extend(0, 2 * int64_t{p_}, highest_);
    // The way over skip[q] = p is the shortest one: it brings a block of this phase, the rank's base block. Others
    // bring blocks of the phase before.
    for (int k = 0; k < q_; ++k) schedule[k] = static_cast<int8_t>(schedule[k] == q_ ? base : schedule[k] - q_);
  }

 private:
  // skip[k + 1], and beyond all ranks for the last k.
  int64_t skip(int k) const noexcept { return k <= q_ ? skip_[k] : INT64_MAX / 4; }

  // The smallest skip of those whose sum is r, taken greedily from above.
  int base_block(int r) const noexcept {
    for (int k = q_ - 1; k >= 0; --k) {
      if (skip_[k] == r) return k;
      if (skip_[k] < r) r -= skip_[k];
    }
    return q_;
  }

  // The skips that no way has begun with yet, from above.
  void unlink(int e) noexcept {
    (above_[e] > q_ ? highest_ : below_[above_[e]]) = below_[e];
    if (below_[e] >= 0) above_[below_[e]] = above_[e];
  }

  // Goes on from `reached`; ways must be shorter than `limit`. `e`: the first skip to try.
  void extend(int64_t reached, int64_t limit, int e) noexcept {
    for (; e >= 0; e = below_[e]) {
      const int64_t next = reached + skip_[e];
      if (found_ >= q_ || next > target_ - skip(found_) || next >= limit) continue;
      if (next <= target_ - skip(found_ + 1)) extend(next, limit, e);
      if (found_ == q_ || reached > target_ - skip(found_ + 1)) return;
      limit = next;
      schedule_[found_++] = static_cast<int8_t>(e);
      unlink(e);
    }
  }

  int p_, q_;
  const int* skip_;
  int8_t below_[CirculantTable::kMostRounds + 1];
  int8_t above_[CirculantTable::kMostRounds + 1];
  int8_t highest_ = 0;
  int64_t target_ = 0;
  int8_t* schedule_ = nullptr;
  int found_ = 0;
};

std::atomic<CirculantTable*> tables{nullptr};

}  // namespace

CirculantTable::CirculantTable(int p, int8_t* blocks) noexcept
    : p_(p), q_(std::bit_width(static_cast<unsigned>(p - 1))), blocks_(blocks) {
  skip_[q_] = p;
  for (int k = q_ - 1; k >= 0; --k) skip_[k] = (skip_[k + 1] + 1) / 2;
  Search search(p, q_, skip_);
  for (int r = 0; r < p; ++r) search.find(r, blocks + static_cast<int64_t>(r) * q_);
}

CirculantTable* CirculantTable::make(int p) noexcept {
  const int64_t q = std::bit_width(static_cast<unsigned>(p - 1));
  std::unique_ptr<int8_t[]> blocks(new (std::nothrow) int8_t[static_cast<size_t>(p * q)]());
  void* const memory = blocks ? operator new(sizeof(CirculantTable), std::nothrow) : nullptr;
  return memory ? new (memory) CirculantTable(p, blocks.release()) : nullptr;
}

const CirculantTable* CirculantTable::of(int p) noexcept {
  CirculantTable* seen = tables.load(std::memory_order_acquire);
  for (const CirculantTable* t = seen; t; t = t->next_)
    if (t->p_ == p) return t;
  CirculantTable* const made = make(p);
  if (!made) return nullptr;
  // Another thread may add the same one: then there are two, of which all later calls find the same.
  made->next_ = seen;
  while (!tables.compare_exchange_weak(made->next_, made, std::memory_order_release, std::memory_order_relaxed)) {
  }
  return made;
}

const CirculantTable* circulant_table(Comm& c) noexcept {
  const CirculantTable* const table = CirculantTable::of(c.size());
  if (!table)
    c.fail(error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory for the circulant schedules of {} ranks",
                 c.team_rank(c.rank()), c.size()));
  return table;
}

}  // namespace ibcoll
