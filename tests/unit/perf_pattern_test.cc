// SPDX-License-Identifier: BSD-3-Clause
#include "perf/ibcoll_perf/pattern.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace ibcoll::perf {
namespace {

TEST(Pattern, EveryFlippedByteIsFound) {
  for (const size_t bytes : {1u, 7u, 8u, 9u, 64u, 1001u}) {
    std::vector<std::byte> memory(bytes + 1);
    const std::span<std::byte> block(memory.data() + 1, bytes);  // not aligned
    const uint64_t key = pattern_key(3, 5, 7);
    fill_pattern(block, key);
    EXPECT_FALSE(verify_pattern(block, key).has_value());
    for (size_t at = 0; at < bytes; ++at) {
      block[at] ^= std::byte{0x10};
      const auto damage = verify_pattern(block, key);
      ASSERT_TRUE(damage.has_value()) << bytes << " " << at;
      EXPECT_EQ(damage->bytes, 1u);
      EXPECT_EQ(damage->first, at);
      EXPECT_EQ(damage->found, damage->expected ^ std::byte{0x10});
      block[at] ^= std::byte{0x10};
    }
  }
}

TEST(Pattern, DependsOnSourceDestinationIterationAndOffset) {
  std::set<uint64_t> keys;
  for (int source = 0; source < 20; ++source) {
    for (int destination = 0; destination < 20; ++destination) {
      for (uint64_t iteration = 0; iteration < 20; ++iteration)
        keys.insert(pattern_key(source, destination, iteration));
    }
  }
  EXPECT_EQ(keys.size(), 8000u);

  std::vector<std::byte> memory(4096 + 8);
  fill_pattern(memory, pattern_key(0, 1, 0));
  // The same data one word on.
  const auto damage = verify_pattern(std::span(memory).subspan(8), pattern_key(0, 1, 0));
  ASSERT_TRUE(damage.has_value());
  EXPECT_GT(damage->bytes, 3500u);
}

TEST(Pattern, EmptyBlockIsRight) { EXPECT_FALSE(verify_pattern({}, 1).has_value()); }

TEST(Pattern, ConstantIsVerified) {
  std::vector<std::byte> memory(100, std::byte{0xC3});
  EXPECT_FALSE(verify_constant(memory, std::byte{0xC3}).has_value());
  memory[99] = std::byte{0};
  const auto damage = verify_constant(memory, std::byte{0xC3});
  ASSERT_TRUE(damage.has_value());
  EXPECT_EQ(damage->first, 99u);
}

template <typename T>
void expect_sum_is_known() {
  constexpr int kRanks = 13;
  constexpr size_t kCount = 100;
  std::vector<T> sum(kCount, 0), one(kCount);
  uint64_t keys = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    const uint64_t key = pattern_key(rank, 0, 4);
    keys += key;
    fill_elements(std::as_writable_bytes(std::span(one)), sizeof(T), key, kPatternStep);
    for (size_t i = 0; i < kCount; ++i) sum[i] = static_cast<T>(sum[i] + one[i]);
  }
  const auto bytes = std::as_writable_bytes(std::span(sum));
  EXPECT_FALSE(verify_elements(bytes, sizeof(T), keys, kRanks * kPatternStep).has_value());
  bytes[kCount * sizeof(T) - 1] ^= std::byte{1};
  EXPECT_TRUE(verify_elements(bytes, sizeof(T), keys, kRanks * kPatternStep).has_value());
}

TEST(Elements, SumOverRanksIsKnownInEveryWidth) {
  expect_sum_is_known<uint8_t>();
  expect_sum_is_known<uint16_t>();
  expect_sum_is_known<uint32_t>();
  expect_sum_is_known<uint64_t>();
}

}  // namespace
}  // namespace ibcoll::perf
