// SPDX-License-Identifier: BSD-3-Clause
// What the calls of a trace have in common, once each: the ranks of teams, and the sizes of irregular blocks, as long as
// a call that is kept has them. Memory is taken when a team makes its first request, and when sizes are new, not by
// later calls.
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
  static constexpr size_t kMostBytes = size_t{64} << 20;  // of all lists; what has no room is not kept

  void add_team(uint64_t epoch, std::span<const int> job_ranks) noexcept;
  // One more call has these sizes: the number of their list. kNone: there is no memory for it.
  uint32_t keep_counts(std::span<const uint64_t> counts) noexcept;
  // One call less has those of this number.
  void drop_counts(uint32_t number) noexcept;

  // By epoch.
  const std::map<uint64_t, std::vector<int>>& teams() const noexcept { return teams_; }
  // Returns the sizes in a list that a call has.
  const std::vector<uint64_t>& counts(uint32_t number) const noexcept { return *lists_[number].sizes; }

 private:
  static constexpr size_t kOfAList = 128;  // bytes that a list takes besides its elements, as an estimate

  struct Hash {
    size_t operator()(const std::vector<uint64_t>& counts) const noexcept;
  };
  struct List {
    const std::vector<uint64_t>* sizes = nullptr;  // a key of `numbers_`
    uint64_t calls = 0;
  };
  bool take(size_t bytes) noexcept;

  std::map<uint64_t, std::vector<int>> teams_;
  std::unordered_map<std::vector<uint64_t>, uint32_t, Hash> numbers_;
  std::vector<List> lists_;     // by number
  std::vector<uint32_t> free_;  // numbers without a list; has room for all
  std::vector<uint64_t> looked_for_;
  size_t bytes_ = 0;
};

}  // namespace ibcoll
