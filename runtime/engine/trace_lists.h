// SPDX-License-Identifier: BSD-3-Clause
// What the calls of a trace have in common, once each: the ranks of teams, and the sizes of irregular blocks. Memory is
// taken when a team makes its first request, and when sizes are new, not by later calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

namespace ibcoll {

class TraceLists {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr size_t kMostBytes = size_t{64} << 20;  // of all lists; what comes later is not kept

  void add_team(uint64_t epoch, std::span<const int> job_ranks) noexcept;
  // The number of the list of these sizes; kNone: there is no memory for it.
  uint32_t add_counts(std::span<const uint64_t> counts) noexcept;

  // By epoch.
  const std::map<uint64_t, std::vector<int>>& teams() const noexcept { return teams_; }
  // By number.
  const std::vector<const std::vector<uint64_t>*>& counts() const noexcept { return counts_; }

 private:
  struct Hash {
    size_t operator()(const std::vector<uint64_t>& counts) const noexcept;
  };
  bool take(size_t bytes) noexcept;

  std::map<uint64_t, std::vector<int>> teams_;
  std::unordered_map<std::vector<uint64_t>, uint32_t, Hash> numbers_;
  std::vector<const std::vector<uint64_t>*> counts_;  // the keys of `numbers_`
  std::vector<uint64_t> looked_for_;
  size_t bytes_ = 0;
};

}  // namespace ibcoll
