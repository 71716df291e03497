// SPDX-License-Identifier: BSD-3-Clause
// The oracle finds each wrong byte, wherever it lies.
#include "tools/oracle/call_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tools/oracle/elements.h"

namespace ibcoll::oracle {
namespace {

constexpr int kRanks = 4;

CallParams irregular(ibcoll_collective_t collective, uint64_t gaps) {
  CallParams params;
  params.collective = collective;
  params.p = kRanks;
  params.gaps = gaps;
  params.sizes = [](int i, int other) { return static_cast<uint64_t>((i * 7 + other * 3) % 5 * 8); };
  return params;
}

std::vector<CallCase> all_ranks(const CallParams& params) {
  std::vector<CallCase> ranks;
  ranks.reserve(kRanks);
  for (int rank = 0; rank < params.p; ++rank) ranks.emplace_back(params, rank);
  for (CallCase& one : ranks) one.fill(5);
  return ranks;
}

// Moves the data of an alltoallv as the arguments say.
void exchange(const std::vector<CallCase>& ranks) {
  for (size_t to = 0; to < ranks.size(); ++to)
    for (size_t from = 0; from < ranks.size(); ++from) {
      const ibcoll_collective_args_t send = ranks[from].args(), recv = ranks[to].args();
      ASSERT_EQ(send.send_counts[to], recv.recv_counts[from]);
      std::memcpy(static_cast<std::byte*>(recv.recv) + recv.recv_displacements[from],
                  static_cast<const std::byte*>(send.send) + send.send_displacements[to], send.send_counts[to]);
    }
}

uint64_t extent(const uint64_t* counts, const uint64_t* displacements) {
  uint64_t end = 0;
  for (size_t i = 0; i < kRanks; ++i) end = std::max(end, displacements[i] + counts[i]);
  return end;
}

// One at a time, in both buffers: in the blocks, between them, before and after.
TEST(Oracle, FindsEveryWrongByte) {
  std::vector<CallCase> ranks = all_ranks(irregular(IBCOLL_ALLTOALLV, 9));
  for (const CallCase& one : ranks) EXPECT_GT(one.damage(5).bytes, 0u);  // nothing has arrived
  exchange(ranks);
  for (const CallCase& one : ranks) {
    EXPECT_EQ(one.check(5), "");
    EXPECT_GT(one.damage(6).bytes, 0u);  // the data of another round
    const ibcoll_collective_args_t args = one.args();
    const auto flip_all = [&](std::byte* buffer, uint64_t bytes) {
      for (int64_t i = -64; i < static_cast<int64_t>(bytes) + 64; ++i) {
        buffer[i] ^= std::byte{1};
        const Damage damage = one.damage(5);
        EXPECT_EQ(damage.bytes, 1u) << i;
        EXPECT_NE(damage.text.find("byte " + std::to_string(i) + " "), std::string::npos) << damage.text;
        buffer[i] ^= std::byte{1};
      }
    };
    flip_all(static_cast<std::byte*>(args.recv), extent(args.recv_counts, args.recv_displacements));
    flip_all(const_cast<std::byte*>(static_cast<const std::byte*>(args.send)),
             extent(args.send_counts, args.send_displacements));
  }
}

// After a failure the blocks may hold anything.
TEST(Oracle, TellsGuardsFromBlocks) {
  std::vector<CallCase> ranks = all_ranks(irregular(IBCOLL_ALLTOALLV, 9));
  const ibcoll_collective_args_t args = ranks[1].args();
  auto* const recv = static_cast<std::byte*>(args.recv);
  std::vector<bool> block(extent(args.recv_counts, args.recv_displacements));
  for (size_t i = 0; i < kRanks; ++i)
    for (uint64_t at = 0; at < args.recv_counts[i]; ++at) block[args.recv_displacements[i] + at] = true;
  EXPECT_NE(std::count(block.begin(), block.end(), false), 0);
  for (size_t i = 0; i < block.size(); ++i) {
    recv[i] ^= std::byte{1};
    EXPECT_EQ(ranks[1].check_guards(5).empty(), block[i]) << i;
    recv[i] ^= std::byte{1};
  }
}

TEST(Oracle, BlocksLieInAnyOrder) {
  const CallLayout layout(irregular(IBCOLL_ALLTOALLV, 9), 2);
  for (const BufferLayout* const buffer : {&layout.send(), &layout.recv()}) {
    const std::vector<uint64_t>& at = buffer->displacements;
    EXPECT_FALSE(std::is_sorted(at.begin(), at.end()));
  }
}

TEST(Oracle, SizesOfPairsGoFromTheRankOfTheRow) {
  CallParams params;
  params.collective = IBCOLL_ALLTOALLV;
  params.p = 2;
  params.counts = {1, 2, 3, 4};
  const CallLayout layout(params, 0);
  EXPECT_EQ(layout.send().counts, (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(layout.recv().counts, (std::vector<uint64_t>{1, 3}));
}

TEST(Oracle, OfEqualValuesTheLowestPlaceCounts) {
  const uint64_t low = uint64_t{5} << 32 | 1, high = uint64_t{5} << 32 | 2, more = uint64_t{6} << 32 | 3;
  for (const ibcoll_op_t op : {IBCOLL_MINLOC, IBCOLL_MAXLOC}) {
    EXPECT_EQ(combine(low, high, op), low);
    EXPECT_EQ(combine(high, low, op), low);
  }
  EXPECT_EQ(combine(high, more, IBCOLL_MINLOC), high);
  EXPECT_EQ(combine(high, more, IBCOLL_MAXLOC), more);
}

TEST(Oracle, HalvesEndAtTheirLargestNumber) {
  for (const auto& [value, bits] :
       {std::pair(0u, 0u), std::pair(1u, 0x3c00u), std::pair(3u, 0x4200u), std::pair(65504u, 0x7bffu),
        std::pair(65536u, 0x7c00u), std::pair(100000u, 0x7c00u), std::pair(131072u, 0x7c00u)}) {
    uint16_t half = 0;
    store(reinterpret_cast<std::byte*>(&half), IBCOLL_FLOAT16, sizeof half, value);
    EXPECT_EQ(half, bits) << value;
  }
}

TEST(Oracle, PacksBlocksWithoutGaps) {
  const CallLayout layout(irregular(IBCOLL_ALLGATHERV, 0), 2);
  uint64_t end = 0;
  for (const BufferLayout::Block& block : layout.recv().blocks) {
    EXPECT_EQ(block.offset, end);
    end += block.bytes;
  }
  EXPECT_EQ(layout.recv().extent, end);
}

TEST(Oracle, KeepsToTheMemoryOfTheCaller) {
  for (const uint64_t misaligned : {uint64_t{0}, uint64_t{63}}) {
    CallParams params = irregular(IBCOLL_ALLGATHERV, 0);
    params.misaligned = misaligned;
    const CallLayout layout(params, 1);
    std::vector<std::byte> send(room_for(layout.send())), recv(room_for(layout.recv()));
    CallCase one(params, 1, {send, recv});
    one.fill(1);
    const auto* const buffer = static_cast<const std::byte*>(one.args().recv);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer) % 64, misaligned);
    EXPECT_GE(buffer - recv.data(), 64);
    EXPECT_LE(buffer + layout.recv().extent + 64, recv.data() + recv.size());
    one.scribble();
    EXPECT_EQ(one.check_scribbled(), "");
    recv[static_cast<size_t>(buffer - recv.data())] ^= std::byte{1};
    EXPECT_NE(one.check_scribbled(), "");
  }
}

}  // namespace
}  // namespace ibcoll::oracle
