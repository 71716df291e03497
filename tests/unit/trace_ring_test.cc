// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/trace.h"

#include <gtest/gtest.h>

#include <array>

namespace ibcoll {
namespace {

TEST(TraceRing, KeepsTheLastCallsInOrderAndCountsTheOthers) {
  TraceRing ring(4);
  EXPECT_EQ(ring.kept(), 0U);
  for (uint32_t op = 1; op <= 11; ++op) {
    TracedCall call;
    call.op = op;
    ring.add(call);
    EXPECT_EQ(ring.kept(), std::min<uint64_t>(op, 4));
    EXPECT_EQ(ring.dropped(), op > 4 ? op - 4 : 0);
    for (uint64_t i = 0; i < ring.kept(); ++i) EXPECT_EQ(ring[i].op, op - ring.kept() + 1 + i);
  }
}

TEST(TraceRing, BytesAreThoseOfABlock) {
  std::array<std::byte, 64> memory{};
  const std::array<uint64_t, 4> counts = {8, 0, 16, 0};
  Args args;
  args.collective = IBCOLL_BCAST;
  args.bytes = 12;
  EXPECT_EQ(traced_bytes(args, 4), 12U);
  args.collective = IBCOLL_ALLTOALL;
  args.recv = {memory.data(), 7, nullptr, nullptr};
  EXPECT_EQ(traced_bytes(args, 4), 7U);
  args.collective = IBCOLL_ALLTOALLV;
  args.recv = {memory.data(), 1, counts.data(), counts.data()};
  EXPECT_EQ(traced_bytes(args, 4), 6U);
  args.collective = IBCOLL_GATHERV;  // only the root knows the others' blocks
  EXPECT_EQ(traced_bytes(args, 4), 12U);
}

}  // namespace
}  // namespace ibcoll
