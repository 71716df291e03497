// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/store_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace ibcoll {
namespace {

// How many of `copies` copies for this reader stream at these costs.
int streaming(StoreCosts& costs, int reader, int copies, float ordinary, float streaming) {
  int count = 0;
  for (int i = 0; i < copies; ++i) {
    const auto [streams, timed] = costs.next(reader);
    if (timed) costs.learn(reader, streams, streams ? streaming : ordinary);
    count += streams;
  }
  return count;
}

TEST(StoreCosts, CheapOrdinaryStoresStay) {
  StoreCosts costs(1);
  EXPECT_LE(streaming(costs, 0, 6100, 0.1F, 0.1F), 110) << "one in 61, to know, and a few more at first";
}

TEST(StoreCosts, DearOnesGiveWayToStreamingOnes) {
  StoreCosts costs(1);
  EXPECT_GE(streaming(costs, 0, 6100, 1.0F, 0.1F), 5900);
}

TEST(StoreCosts, AreKnownAfterFewCopies) {
  StoreCosts costs(1);
  streaming(costs, 0, 17, 1.0F, 0.1F);
  EXPECT_GE(streaming(costs, 0, 30, 1.0F, 0.1F), 28);
}

TEST(StoreCosts, FirstCopiesThatFindNoPagesAreSoonForgotten) {
  StoreCosts costs(1);
  streaming(costs, 0, 34, 50.0F, 50.0F);
  streaming(costs, 0, 34, 0.1F, 0.1F);
  EXPECT_LE(streaming(costs, 0, 1000, 0.1F, 0.1F), 50);
}

TEST(StoreCosts, ReadersDiffer) {
  StoreCosts costs(2);
  int near = 0, far = 0;
  for (int i = 0; i < 1000; ++i) {
    near += streaming(costs, 0, 1, 0.05F, 0.1F);
    far += streaming(costs, 1, 1, 1.0F, 0.1F);
  }
  EXPECT_LE(near, 20);
  EXPECT_GE(far, 950);
}

TEST(StoreCosts, FollowAReaderThatMoves) {
  StoreCosts costs(1);
  for (int i = 0; i < 3; ++i) {
    streaming(costs, 0, 1200, 1.0F, 0.1F);
    EXPECT_GE(streaming(costs, 0, 1000, 1.0F, 0.1F), 950);
    streaming(costs, 0, 1200, 0.05F, 0.1F);
    EXPECT_LE(streaming(costs, 0, 1000, 0.05F, 0.1F), 50);
  }
}

TEST(StoreCosts, OneInterruptedCopyIsSoonForgotten) {
  StoreCosts costs(1);
  streaming(costs, 0, 1000, 0.14F, 0.1F);
  costs.learn(0, false, 1000.0F);
  EXPECT_LE(streaming(costs, 0, 1000, 0.14F, 0.1F), 100) << "until the next one is timed, and one in 61";
}

// Nothing is known yet that it could be measured by.
TEST(StoreCosts, AnInterruptionAmongTheFirstCopiesIsForgotten) {
  for (const bool streams : {false, true}) {
    StoreCosts costs(1);
    const float ordinary = streams ? 1.0F : 0.1F;
    for (int i = 0; i < 4; ++i) {
      costs.learn(0, false, !streams && i == 3 ? 1e4F : ordinary);
      costs.learn(0, true, streams && i == 3 ? 1e4F : 0.15F);
    }
    streaming(costs, 0, 1000, ordinary, 0.15F);
    const int found = streaming(costs, 0, 1000, ordinary, 0.15F);
    EXPECT_LE(streams ? 1000 - found : found, 20) << (streams ? "a streaming one" : "an ordinary one");
  }
}

// Costs that make it stream until many copies have been timed.
StoreCosts dear() {
  StoreCosts costs(1);
  for (int i = 0; i < 4; ++i) costs.learn(0, false, 1e6F);
  costs.learn(0, true, 1e-6F);
  return costs;
}

TEST(CopyStreaming, CopiesEveryByteAndNoOther) {
  std::vector<std::byte> from(1000), to(1000), expected(1000);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + i / 256 + 1);
  for (size_t at = 0; at < 64; ++at) {
    for (size_t bytes = 0; bytes <= 300; ++bytes) {
      std::fill(to.begin(), to.end(), std::byte{0});
      std::fill(expected.begin(), expected.end(), std::byte{0});
      std::copy_n(from.begin() + 3, bytes, expected.begin() + static_cast<long>(at));
      copy_streaming(to.data() + at, from.data() + 3, bytes);
      fence_streaming();
      ASSERT_EQ(to, expected) << bytes << " bytes at " << at;
    }
  }
  copy_streaming(nullptr, nullptr, 0);
}

TEST(StoreChoice, CopiesEveryByteAndNoOther) {
  std::mt19937 random(1);
  constexpr size_t kSpace = 5000;
  std::vector<std::byte> from(kSpace), to(kSpace), expected(kSpace);
  for (std::byte& b : from) b = static_cast<std::byte>(random());
  StoreChoice streams(dear()), stores(StoreCosts(1));
  for (int i = 0; i < 2000; ++i) {
    const size_t bytes = random() % 4500, at = random() % (kSpace - bytes), source = random() % (kSpace - bytes);
    std::fill(to.begin(), to.end(), std::byte{0});
    std::fill(expected.begin(), expected.end(), std::byte{0});
    std::copy_n(from.begin() + static_cast<long>(source), bytes, expected.begin() + static_cast<long>(at));
    StoreChoice& choice = i % 2 == 0 ? streams : stores;
    choice.copy(0, std::span(to).subspan(at, bytes), std::span<const std::byte>(from).subspan(source, bytes));
    choice.fence();
    ASSERT_EQ(to, expected) << bytes << " bytes at " << at;
  }
}

}  // namespace
}  // namespace ibcoll
