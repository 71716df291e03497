// SPDX-License-Identifier: BSD-3-Clause
// Which ranks of the job are in a team, and which of them is this one.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/comm/placement.h"

namespace ibcoll {

class TeamMembers {
 public:
  // `epoch` differs from that of every other team of the job and is the same on all its ranks.
  TeamMembers(uint64_t epoch, std::shared_ptr<const Placement> placement, int rank, int job_size)
      : epoch_(epoch), placement_(std::move(placement)), rank_(rank) {
    if (placement_->in_job_order()) return;
    team_ranks_.assign(static_cast<size_t>(job_size), -1);
    for (int i = 0; i < size(); ++i) team_ranks_[static_cast<size_t>(job_rank(i))] = i;
  }

  uint64_t epoch() const noexcept { return epoch_; }
  // For people. Teams of one number have no rank in common; the first team of a job has number 1.
  uint32_t number() const noexcept { return number_; }
  void set_number(uint32_t number) noexcept { number_ = number; }
  // The number of the next team made of this one.
  uint32_t number_next_child() noexcept { return ++children_; }
  int rank() const noexcept { return rank_; }
  int size() const noexcept { return placement_->size(); }
  const Placement& placement() const noexcept { return *placement_; }
  int job_rank(int rank) const noexcept { return placement_->job_rank(rank); }
  // -1: not a member
  int team_rank(int job_rank) const noexcept {
    if (team_ranks_.empty()) return job_rank < size() ? job_rank : -1;
    return team_ranks_[static_cast<size_t>(job_rank)];
  }

 private:
  uint64_t epoch_;
  uint32_t number_ = 1;
  uint32_t children_ = 0;
  std::shared_ptr<const Placement> placement_;
  int rank_;
  std::vector<int> team_ranks_;  // job rank -> team rank; empty when they are the same
};

}  // namespace ibcoll
