// SPDX-License-Identifier: BSD-3-Clause
#include "perf/ibcoll_perf/layout.h"

#include <algorithm>

#include "perf/call_times.h"

namespace ibcoll::perf {
namespace {

constexpr uint64_t kGap = 5;  // odd, so that blocks start at any address

uint64_t block_bytes(const LayoutParams& params, int source, int destination) {
  // In place, what a rank sends to a peer lies where the peer's block will come: both are of one size.
  if (params.in_place && params.collective == IBCOLL_ALLTOALLV && source > destination) std::swap(source, destination);
  if (!params.hard) return irregular_bytes(params.bytes, source, destination);
  const auto weight = (static_cast<uint64_t>(source) * 7 + static_cast<uint64_t>(destination) * 3) % 5;
  return params.bytes * weight / 2;
}

// Appends a block behind the others and returns its offset.
uint64_t append(std::vector<Block>& blocks, uint64_t& extent, Block block) {
  block.offset = extent;
  extent += block.bytes;
  blocks.push_back(block);
  return block.offset;
}

void append_irregular(const LayoutParams& params, Block block, std::vector<Block>& blocks, uint64_t& extent,
                      std::vector<uint64_t>& counts, std::vector<uint64_t>& displacements) {
  if (params.hard && !blocks.empty()) extent += kGap;
  counts.push_back(block.bytes);
  displacements.push_back(append(blocks, extent, block));
}

void gather_layout(const LayoutParams& params, Layout& layout) {
  for (int source = 0; source < params.size; ++source) {
    if (params.collective == IBCOLL_ALLGATHERV) {
      append_irregular(params, {0, block_bytes(params, source, 0), source, 0}, layout.recv, layout.recv_bytes,
                       layout.recv_counts, layout.recv_displacements);
    } else {
      append(layout.recv, layout.recv_bytes, {0, params.bytes, source, 0});
    }
  }
  Block own = layout.recv[static_cast<size_t>(params.rank)];
  if (!params.in_place) {
    own.offset = 0;
    layout.send_bytes = own.bytes;
  }
  layout.send = {own};
}

void alltoall_layout(const LayoutParams& params, Layout& layout) {
  for (int peer = 0; peer < params.size; ++peer) {
    if (params.collective == IBCOLL_ALLTOALLV) {
      append_irregular(params, {0, block_bytes(params, params.rank, peer), params.rank, peer}, layout.send,
                       layout.send_bytes, layout.send_counts, layout.send_displacements);
      append_irregular(params, {0, block_bytes(params, peer, params.rank), peer, params.rank}, layout.recv,
                       layout.recv_bytes, layout.recv_counts, layout.recv_displacements);
    } else {
      append(layout.send, layout.send_bytes, {0, params.bytes, params.rank, peer});
      append(layout.recv, layout.recv_bytes, {0, params.bytes, peer, params.rank});
    }
  }
  if (params.in_place) layout.send_bytes = 0;
}

}  // namespace

Layout make_layout(const LayoutParams& params) {
  Layout layout;
  layout.send_in_recv = params.in_place;
  switch (params.collective) {
    case IBCOLL_BCAST:
      layout.send_in_recv = true;
      append(layout.recv, layout.recv_bytes, {0, params.bytes, params.root, 0});
      if (params.rank == params.root) layout.send = layout.recv;
      break;
    case IBCOLL_ALLGATHER:
    case IBCOLL_ALLGATHERV:
      gather_layout(params, layout);
      break;
    case IBCOLL_ALLTOALL:
    case IBCOLL_ALLTOALLV:
      alltoall_layout(params, layout);
      break;
    case IBCOLL_ALLREDUCE:
      append(layout.send, layout.send_bytes, {0, params.bytes, params.rank, 0});
      append(layout.recv, layout.recv_bytes, {0, params.bytes, params.rank, 0});
      if (params.in_place) layout.send_bytes = 0;
      break;
    default:
      break;  // barrier: no data
  }
  return layout;
}

}  // namespace ibcoll::perf
