// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ibcoll::run {

// The process that is connected as each rank, and the series of exchanges in which the rank's next bootstrap takes
// part.
class RankRegistry {
 public:
  // A rank may create, or try to create, this many contexts more than the rank that has created the fewest.
  static constexpr int kMostAhead = 64;

  explicit RankRegistry(size_t ranks) : entries_(ranks) {}

  // Another process has connections as that rank. It may be about to end.
  bool held_by_other(uint32_t rank, uint64_t process) const {
    return entries_[rank].connections > 0 && entries_[rank].process != process;
  }
  // For `process`, which is refused: who has the connections, another process or another copy of the library in it.
  std::string held_text(uint32_t rank, uint64_t process) const;
  // Why the rank may not join a further series; "": it may.
  std::string too_far_ahead(uint32_t rank) const;
  // Adds a connection and returns its series.
  int join(uint32_t rank, uint64_t process);
  void leave(int rank) { --entries_[static_cast<size_t>(rank)].connections; }

 private:
  struct Entry {
    uint64_t process = 0;
    int connections = 0;
    int next_series = 0;
  };
  std::vector<Entry> entries_;
};

}  // namespace ibcoll::run
