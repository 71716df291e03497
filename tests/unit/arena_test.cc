// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/base/arena.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace ibcoll {
namespace {

TEST(Arena, AlignsEverythingAndOverlapsNothing) {
  Arena arena;
  std::set<std::byte*> starts;
  std::byte* before = nullptr;
  size_t bytes_before = 0;
  for (const size_t bytes : {1, 64, 65, 4096, 100'000, 3}) {
    auto* const memory = static_cast<std::byte*>(arena.allocate(bytes));
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
    EXPECT_TRUE(starts.insert(memory).second);
    if (before) {
      EXPECT_TRUE(memory >= before + bytes_before || memory + bytes <= before);
    }
    std::memset(memory, 0x5A, bytes);  // a sanitizer sees what is too short
    before = memory;
    bytes_before = bytes;
  }
}

TEST(Arena, GivesMemoryForNothing) {
  Arena arena;
  void* const first = arena.allocate(0);
  EXPECT_NE(first, nullptr);
  EXPECT_NE(arena.allocate(0), first);
}

TEST(Arena, RefusesWhatNobodyHas) {
  Arena arena;
  EXPECT_NE(arena.allocate(100), nullptr);
  EXPECT_EQ(arena.allocate(~size_t{0}), nullptr);
  EXPECT_EQ(arena.allocate(~size_t{0} - 4096), nullptr);
  EXPECT_NE(arena.allocate(100), nullptr);
}

TEST(Arena, StartsAgainInTheSameMemory) {
  Arena arena;
  void* const first = arena.allocate(1000);
  void* const second = arena.allocate(1000);
  arena.reset();
  EXPECT_EQ(arena.allocate(1000), first);
  EXPECT_EQ(arena.allocate(1000), second);
}

TEST(Arena, HasOnePieceForWhatTookSeveral) {
  Arena arena;
  for (int i = 0; i < 20; ++i) ASSERT_NE(arena.allocate(3000), nullptr);
  arena.reset();
  auto* at = static_cast<std::byte*>(arena.allocate(3000));
  for (int i = 1; i < 20; ++i) {
    auto* const next = static_cast<std::byte*>(arena.allocate(3000));
    EXPECT_EQ(next - at, 3008);
    at = next;
  }
}

TEST(Arena, HasRoomForMoreThanTheLastTime) {
  Arena arena;
  ASSERT_NE(arena.allocate(4000), nullptr);  // nearly all of the first chunk
  arena.reset();
  const size_t before = arena.bytes();
  ASSERT_NE(arena.allocate(4000), nullptr);
  ASSERT_NE(arena.allocate(1000), nullptr);
  EXPECT_EQ(arena.bytes(), before);
}

// Counts what it has given.
struct CountedBlocks final : LongBlocks {
  void* take(size_t& bytes) noexcept override {
    if (refuses) return nullptr;
    ++taken;
    bytes += kMore;
    return ::operator new(bytes, std::align_val_t(64));
  }
  void give_back(void* block, size_t bytes) noexcept override {
    ++given_back;
    bytes_back += bytes;
    ::operator delete(block, std::align_val_t(64));
  }
  static constexpr size_t kMore = 128;
  bool refuses = false;
  int taken = 0, given_back = 0;
  size_t bytes_back = 0;
};

TEST(Arena, GivesLongBlocksBack) {
  CountedBlocks blocks;
  {
    Arena arena(Arena::kUsualChunk, &blocks);
    ASSERT_NE(arena.allocate(Arena::kLong - 1), nullptr);
    EXPECT_EQ(blocks.taken, 0);
    arena.reset();
    const size_t before = arena.bytes();
    for (int i = 0; i < 2; ++i) {
      auto* const memory = static_cast<std::byte*>(arena.allocate(Arena::kLong));
      ASSERT_NE(memory, nullptr);
      std::memset(memory, 1, Arena::kLong);
    }
    EXPECT_EQ(blocks.taken, 2);
    EXPECT_EQ(arena.bytes(), before + 2 * (Arena::kLong + CountedBlocks::kMore));
    arena.reset();
    EXPECT_EQ(blocks.given_back, 2);
    EXPECT_EQ(blocks.bytes_back, 2 * (Arena::kLong + CountedBlocks::kMore));
    EXPECT_EQ(arena.bytes(), before);
    blocks.refuses = true;
    EXPECT_EQ(arena.allocate(Arena::kLong), nullptr);
    blocks.refuses = false;
    ASSERT_NE(arena.allocate(Arena::kLong), nullptr);
  }
  EXPECT_EQ(blocks.given_back, 3);
}

TEST(Arena, KnowsWhatItHas) {
  CountedBlocks blocks;
  Arena arena(Arena::kUsualChunk, &blocks);
  int other = 0;
  EXPECT_FALSE(arena.has(&other));
  const void* const first = arena.allocate(100);
  const auto* const in_another_chunk = static_cast<std::byte*>(arena.allocate(50'000));
  const auto* const in_a_block = static_cast<std::byte*>(arena.allocate(Arena::kLong));
  EXPECT_TRUE(arena.has(first) && arena.has(in_another_chunk + 49'999) && arena.has(in_a_block + 1));
  EXPECT_FALSE(arena.has_long(first) || arena.has_long(in_another_chunk));
  EXPECT_TRUE(arena.has_long(in_a_block));
  EXPECT_FALSE(arena.has(&other));
}

TEST(Arena, MakesObjects) {
  struct Thing {
    int value = 7;
  };
  Arena arena;
  const Thing* const thing = arena.create<Thing>();
  ASSERT_NE(thing, nullptr);
  EXPECT_EQ(thing->value, 7);
}

}  // namespace
}  // namespace ibcoll
