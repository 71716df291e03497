// SPDX-License-Identifier: BSD-3-Clause
// Ranks of the job that this process has lost: dead, as far as is known, or out of reach for a lack of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include "runtime/base/status.h"

namespace ibcoll {

class LostRanks {
 public:
  // `reserve`: takes all its memory now. Simulated ranks do so only once a peer has died.
  LostRanks(int size, bool reserve) : size_(static_cast<size_t>(size)), dead_(reserve ? size_ : 0) {}

  bool dead(int job_rank) const noexcept { return any_dead_ && dead_[static_cast<size_t>(job_rank)]; }
  bool any_dead() const noexcept { return any_dead_; }
  // False: that was known.
  bool add_dead(int job_rank) noexcept {
    if (dead_.empty()) dead_.resize(size_);
    if (dead_[static_cast<size_t>(job_rank)]) return false;
    return any_dead_ = dead_[static_cast<size_t>(job_rank)] = true;
  }
  // This process lacks the means to reach a rank, which lives.
  void add_out_of_reach(int job_rank, const Status& why) noexcept {
    try {
      out_of_reach_.emplace_back(job_rank, why);
    } catch (const std::bad_alloc&) {  // teams that are made later find it themselves
    }
  }
  bool any_out_of_reach() const noexcept { return !out_of_reach_.empty(); }
  bool reaches(int job_rank) const noexcept {
    return !dead(job_rank) && std::none_of(out_of_reach_.begin(), out_of_reach_.end(),
                                           [=](const auto& one) { return one.first == job_rank; });
  }
  // Calls died(job_rank) and out_of_reach(job_rank, why) for all of them.
  template <typename Died, typename OutOfReach>
  void for_each(Died died, OutOfReach out_of_reach) const {
    for (size_t rank = 0; any_dead_ && rank < dead_.size(); ++rank)
      if (dead_[rank]) died(static_cast<int>(rank));
    for (const auto& [rank, why] : out_of_reach_) out_of_reach(rank, why);
  }

 private:
  size_t size_;
  bool any_dead_ = false;
  std::vector<bool> dead_;  // by job rank
  std::vector<std::pair<int, Status>> out_of_reach_;
};

}  // namespace ibcoll
