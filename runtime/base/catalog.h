// SPDX-License-Identifier: BSD-3-Clause
// The description of each collective, one row each. Argument checks, the digest of a call, shapes, settings, tools,
// benchmarks and the tests' oracle follow from these rows.
//
// A rank's part of a buffer is one block or p blocks in rank order. Which data comes where follows from that:
//   recv has p blocks      block i comes from rank i: its one block, or the block for this rank where send has p blocks
//   recv has one block     it is rank r's block of what the root sends (p blocks), or all that the root sends (one
//                          block)
//   with an operation      the same block of several ranks' send buffers, combined in rank order
#pragma once

#include <iterator>

#include "runtime/include/ibcoll.h"

namespace ibcoll {

// The part of a buffer that a rank has.
enum class Extent { kNothing, kBlock, kBlocks };

struct Buffer {
  Extent extent = Extent::kNothing;
  bool at_root_only = false;  // significant there, ignored elsewhere
};

// Whose send buffers an operation combines at rank r.
enum class Combines { kNothing, kAll, kUpToSelf, kBelowSelf };

// Irregular blocks: which ranks know all sizes. Others know the sizes that they send and receive themselves.
enum class SizesKnown { kRegular, kToAll, kToRoot, kToPairs };

struct Collective {
  ibcoll_collective_t id;
  const char* name;
  bool rooted = false;
  Buffer send;
  Buffer recv;
  Combines combines = Combines::kNothing;
  SizesKnown sizes = SizesKnown::kRegular;
  bool one_buffer = false;  // the root sends what is in the receive buffer (bcast)

  constexpr bool reduces() const noexcept { return combines != Combines::kNothing; }
  constexpr bool irregular() const noexcept { return sizes != SizesKnown::kRegular; }
  constexpr bool moves_data() const noexcept { return recv.extent != Extent::kNothing; }
  constexpr bool scatters() const noexcept {
    return rooted && send.extent == Extent::kBlocks && recv.extent == Extent::kBlock;
  }
  // This rank may give IBCOLL_IN_PLACE as its send buffer; of scatter(v), as its receive buffer.
  constexpr bool may_be_in_place(int rank, int root) const noexcept {
    return !one_buffer && moves_data() && (!rooted || rank == root);
  }
};

// In the order of ibcoll_collective_t.
inline constexpr Collective kCatalog[] = {
    {.id = IBCOLL_BARRIER, .name = "barrier", .send = {}, .recv = {}},
    {.id = IBCOLL_BCAST,
     .name = "bcast",
     .rooted = true,
     .send = {Extent::kBlock, true},
     .recv = {Extent::kBlock},
     .one_buffer = true},
    {.id = IBCOLL_ALLGATHER, .name = "allgather", .send = {Extent::kBlock}, .recv = {Extent::kBlocks}},
    {.id = IBCOLL_ALLGATHERV,
     .name = "allgatherv",
     .send = {Extent::kBlock},
     .recv = {Extent::kBlocks},
     .sizes = SizesKnown::kToAll},
    {.id = IBCOLL_ALLTOALL, .name = "alltoall", .send = {Extent::kBlocks}, .recv = {Extent::kBlocks}},
    {.id = IBCOLL_ALLTOALLV,
     .name = "alltoallv",
     .send = {Extent::kBlocks},
     .recv = {Extent::kBlocks},
     .sizes = SizesKnown::kToPairs},
    {.id = IBCOLL_ALLREDUCE,
     .name = "allreduce",
     .send = {Extent::kBlock},
     .recv = {Extent::kBlock},
     .combines = Combines::kAll},
    {.id = IBCOLL_GATHER, .name = "gather", .rooted = true, .send = {Extent::kBlock}, .recv = {Extent::kBlocks, true}},
    {.id = IBCOLL_GATHERV,
     .name = "gatherv",
     .rooted = true,
     .send = {Extent::kBlock},
     .recv = {Extent::kBlocks, true},
     .sizes = SizesKnown::kToRoot},
    {.id = IBCOLL_SCATTER,
     .name = "scatter",
     .rooted = true,
     .send = {Extent::kBlocks, true},
     .recv = {Extent::kBlock}},
    {.id = IBCOLL_SCATTERV,
     .name = "scatterv",
     .rooted = true,
     .send = {Extent::kBlocks, true},
     .recv = {Extent::kBlock},
     .sizes = SizesKnown::kToRoot},
    {.id = IBCOLL_REDUCE,
     .name = "reduce",
     .rooted = true,
     .send = {Extent::kBlock},
     .recv = {Extent::kBlock, true},
     .combines = Combines::kAll},
    {.id = IBCOLL_REDUCE_SCATTER,
     .name = "reduce_scatter",
     .send = {Extent::kBlocks},
     .recv = {Extent::kBlock},
     .combines = Combines::kAll,
     .sizes = SizesKnown::kToAll},
    {.id = IBCOLL_REDUCE_SCATTER_BLOCK,
     .name = "reduce_scatter_block",
     .send = {Extent::kBlocks},
     .recv = {Extent::kBlock},
     .combines = Combines::kAll},
    {.id = IBCOLL_SCAN,
     .name = "scan",
     .send = {Extent::kBlock},
     .recv = {Extent::kBlock},
     .combines = Combines::kUpToSelf},
    {.id = IBCOLL_EXSCAN,
     .name = "exscan",
     .send = {Extent::kBlock},
     .recv = {Extent::kBlock},
     .combines = Combines::kBelowSelf},
};
inline constexpr int kCollectives = static_cast<int>(std::size(kCatalog));

// nullptr: not one of ibcoll_collective_t, which a C program may pass.
constexpr const Collective* find_collective(ibcoll_collective_t id) noexcept {
  const auto index = static_cast<long long>(id);
  return index >= 0 && index < kCollectives ? &kCatalog[index] : nullptr;
}

static_assert([] {
  for (int i = 0; i < kCollectives; ++i)
    if (kCatalog[i].id != i) return false;
  return true;
}());

}  // namespace ibcoll
