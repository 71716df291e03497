// SPDX-License-Identifier: BSD-3-Clause
// The counts of a collective with one block per rank.
#pragma once

#include <cstdint>
#include <vector>

#include "perf/guideline_loop/guidelines.h"

namespace ibcoll::perf {

// `Count`: what the library counts bytes with.
template <typename Count>
class BlockCounts {
 public:
  enum class Form { kRegular, kIrregular };
  explicit BlockCounts(int ranks) : ranks_(ranks) {}

  // Made anew only where they differ from those of the last call: no part of a timed call.
  void make(Form form, uint64_t bytes) {
    if (bytes == bytes_ && form == form_ && !counts.empty()) return;
    form_ = form, bytes_ = bytes;
    counts.clear(), displacements.clear();
    uint64_t total = 0;
    for (int rank = 0; rank < ranks_; ++rank) {
      const uint64_t block = form == Form::kRegular ? bytes : irregular_block(bytes, rank, ranks_);
      counts.push_back(static_cast<Count>(block));
      displacements.push_back(static_cast<Count>(total));
      total += block;
    }
  }
  std::vector<Count> counts, displacements;

 private:
  int ranks_;
  Form form_ = Form::kRegular;
  uint64_t bytes_ = 0;
};

}  // namespace ibcoll::perf
