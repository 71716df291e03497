// SPDX-License-Identifier: BSD-3-Clause
// The trees of broadcasts: every rank but the root is a child of its parent, and of no other.
#include "runtime/collectives/bcast/trees.h"

#include <gtest/gtest.h>

#include <vector>

namespace ibcoll::bcast {
namespace {

template <typename Tree>
void check(int p, int radix) {
  std::vector<int> heard_of(static_cast<size_t>(p), 0), depth(static_cast<size_t>(p), 0);
  int deepest = 0;
  for (int v = 0; v < p; ++v) {
    const Tree tree(p, v, radix);
    for (int slot = 0; slot < tree.slots(); ++slot) {
      const int64_t child = tree.child(slot);
      ASSERT_GT(child, v);
      if (child >= p) continue;
      EXPECT_EQ(Tree(p, static_cast<int>(child), radix).parent(), v) << "child " << child << " of " << p;
      ++heard_of[static_cast<size_t>(child)];
      depth[static_cast<size_t>(child)] = depth[static_cast<size_t>(v)] + 1;
      deepest = std::max(deepest, depth[static_cast<size_t>(child)]);
    }
  }
  for (int v = 1; v < p; ++v)
    EXPECT_EQ(heard_of[static_cast<size_t>(v)], 1) << v << " of " << p << " to base " << radix;
  EXPECT_LE(deepest, Tree::shape(p, radix).depth) << p << " to base " << radix;
}

TEST(BroadcastTrees, EveryRankHearsFromItsParent) {
  for (int p = 1; p <= 70; ++p) {
    for (const int radix : {2, 3, 4, 7, 64, 1024}) check<KnomialTree>(p, radix);
    check<Chain>(p, 2);
  }
}

}  // namespace
}  // namespace ibcoll::bcast
