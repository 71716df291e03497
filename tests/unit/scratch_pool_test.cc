// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/scratch_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "runtime/machine/user_memory.h"

namespace ibcoll {
namespace {

constexpr size_t kMb = 1 << 20;

TEST(ScratchPool, GivesTheSameBlockAgain) {
  ScratchPool pool;
  size_t bytes = kMb + 1;
  void* const block = pool.take(bytes);
  ASSERT_NE(block, nullptr);
  EXPECT_GE(bytes, kMb + 1);
  std::memset(block, 1, bytes);
  pool.give_back(block, bytes);
  EXPECT_EQ(pool.idle_bytes(), bytes);
  size_t again = kMb;
  EXPECT_EQ(pool.take(again), block);
  EXPECT_EQ(again, bytes);
  EXPECT_EQ(pool.idle_bytes(), 0u);
  pool.give_back(block, again);
}

// Registration caches keep it pinned: freeing it would be noticed.
TEST(ScratchPool, IsMemoryWhoseEndIsKnown) {
  ScratchPool pool;
  size_t bytes = 100'000;
  auto* const block = static_cast<std::byte*>(pool.take(bytes));
  EXPECT_TRUE(is_allocated({block, bytes}));
  pool.give_back(block, bytes);
  EXPECT_TRUE(is_allocated({block, bytes}));
}

// Blocks of other sizes: the shortest that is long enough, and none that would waste more than half.
TEST(ScratchPool, TakesTheBlockThatFits) {
  ScratchPool pool;
  std::vector<size_t> sizes = {8 * kMb, 2 * kMb, 3 * kMb};
  std::vector<void*> blocks;
  for (size_t& bytes : sizes) blocks.push_back(pool.take(bytes));
  for (size_t i = 0; i < sizes.size(); ++i) pool.give_back(blocks[i], sizes[i]);
  size_t two = 2 * kMb - 1, three = 3 * kMb, little = kMb / 2;
  EXPECT_EQ(pool.take(two), blocks[1]);
  EXPECT_EQ(pool.take(three), blocks[2]);
  void* const other = pool.take(little);
  EXPECT_NE(other, blocks[0]);
  EXPECT_EQ(little, kMb / 2);
  pool.give_back(blocks[2], three);
  pool.give_back(blocks[1], two);
  pool.give_back(other, little);
}

// What equal calls take in the same order are the same blocks.
TEST(ScratchPool, LastGivenFirstTaken) {
  ScratchPool pool;
  size_t bytes = kMb;
  void* const first = pool.take(bytes);
  void* const second = pool.take(bytes);
  pool.give_back(second, bytes);
  pool.give_back(first, bytes);
  EXPECT_EQ(pool.take(bytes), first);
  EXPECT_EQ(pool.take(bytes), second);
  pool.give_back(second, bytes);
  pool.give_back(first, bytes);
}

TEST(ScratchPool, KeepsNoMoreThanItMay) {
  ScratchPool pool;
  size_t huge = ScratchPool::kMostIdleBytes + 1;
  void* const block = pool.take(huge);
  pool.give_back(block, huge);
  EXPECT_EQ(pool.idle_bytes(), 0u);
  size_t little = kMb / 16;
  std::vector<void*> blocks;
  for (size_t i = 0; i < 3 * ScratchPool::kMostIdle; ++i) blocks.push_back(pool.take(little));
  for (void* one : blocks) pool.give_back(one, little);
  EXPECT_EQ(pool.idle_bytes(), ScratchPool::kMostIdle * little);
}

// Those that were given back first go.
TEST(ScratchPool, FreesTheOldest) {
  ScratchPool pool;
  std::vector<void*> blocks;
  size_t bytes = 3 * kMb;
  for (int i = 0; i < 40; ++i) blocks.push_back(pool.take(bytes));
  for (void* block : blocks) {
    pool.give_back(block, bytes);
    EXPECT_LE(pool.idle_bytes(), ScratchPool::kMostIdleBytes);
  }
  EXPECT_FALSE(is_allocated({static_cast<std::byte*>(blocks[0]), bytes}));
  EXPECT_TRUE(is_allocated({static_cast<std::byte*>(blocks[39]), bytes}));
}

// A run of two blocks; true: both were there.
bool run_of_two(ScratchPool& pool, size_t bytes) {
  const size_t idle = pool.idle_bytes();
  size_t first = bytes, second = bytes;
  void* const one = pool.take(first);
  void* const other = pool.take(second);
  const bool found = pool.idle_bytes() + first + second == idle;
  pool.give_back(other, second);
  pool.give_back(one, first);
  return found;
}

TEST(ScratchPool, KeepsWhatRepeatedRunsNeed) {
  constexpr size_t kHuge = 40 * kMb;
  ScratchPool pool;
  EXPECT_FALSE(run_of_two(pool, kHuge));
  EXPECT_EQ(pool.idle_bytes(), 0u) << "a single long call";
  EXPECT_FALSE(run_of_two(pool, kHuge));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(run_of_two(pool, kHuge)) << "a repeated one";
  run_of_two(pool, kMb);
  EXPECT_TRUE(run_of_two(pool, kHuge)) << "beside others";
  for (size_t i = 0; i < ScratchPool::kRuns; ++i) run_of_two(pool, kMb);
  EXPECT_LE(pool.idle_bytes(), ScratchPool::kMostIdleBytes) << "none any more";
}

// Of a run that takes more, one block is there.
TEST(ScratchPool, KeepsAGigabyteAtMost) {
  constexpr size_t kHuge = ScratchPool::kMostIdleBytesOfRuns * 2 / 3;
  ScratchPool pool;
  for (int i = 0; i < 4; ++i) {
    run_of_two(pool, kHuge);
    EXPECT_EQ(pool.idle_bytes(), i == 0 ? 0 : kHuge / 4096 * 4096 + 4096);
  }
  run_of_two(pool, 2 * kHuge);
  EXPECT_LE(pool.idle_bytes(), ScratchPool::kMostIdleBytesOfRuns);
}

// Where memory is short, what is idle makes room.
TEST(ScratchPool, RefusesWhatNobodyHas) {
  ScratchPool pool;
  size_t bytes = kMb;
  void* const block = pool.take(bytes);
  pool.give_back(block, bytes);
  size_t most = ~size_t{0} / 2;
  EXPECT_EQ(pool.take(most), nullptr);
  EXPECT_EQ(pool.idle_bytes(), 0u);
}

}  // namespace
}  // namespace ibcoll
