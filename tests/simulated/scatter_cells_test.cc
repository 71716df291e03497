// SPDX-License-Identifier: BSD-3-Clause
// Scatter(v) on one node: the line of the root holds the sizes of all blocks and, while there is room, the blocks.
#include "tests/simulated/one_call.h"

namespace ibcoll {
namespace {

void scatter(const std::vector<uint64_t>& counts, int root) {
  OneCall call;
  call.params.collective = IBCOLL_SCATTERV;
  call.params.p = static_cast<int>(counts.size());
  call.params.root = root;
  call.params.counts = counts;
  call.algorithm = "shm_tree";
  call.parameter = 2000;
  call.node_of.assign(counts.size(), 0);
  run_one_call(call);  // which looks at the data
}

TEST(ScatterCells, BlocksThatFillTheLine) {
  for (const uint64_t last : {463, 464, 465, 488, 489, 496, 1999, 2000, 2001}) {
    SCOPED_TRACE(last);
    scatter({8, last}, 0);
    scatter({last, 8}, 1);
    scatter({0, last, 0, 8}, 2);
  }
}

// A block that has no room in the line does not keep a shorter one out of it.
TEST(ScatterCells, SomeOfTheBlocksInTheLine) {
  scatter({400, 100, 300, 16, 0, 3000, 24}, 3);
  scatter({1, 500, 2, 460, 3, 5}, 0);
}

// 62 sizes fill a line.
TEST(ScatterCells, MoreRanksThanALineHasSizes) {
  for (const size_t ranks : {61, 62, 63, 64}) {
    SCOPED_TRACE(ranks);
    std::vector<uint64_t> counts(ranks);
    for (size_t i = 0; i < ranks; ++i) counts[i] = i * 40 % 2100;
    scatter(counts, static_cast<int>(ranks / 2));
  }
}

}  // namespace
}  // namespace ibcoll
