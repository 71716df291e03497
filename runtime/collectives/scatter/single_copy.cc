// SPDX-License-Identifier: BSD-3-Clause
// Scatter(v) on one node: the root publishes where each rank's block is, and how long; all read at the same time, each
// its own block with one copy. The root stays until they have. Where the root sends, it alone moves all bytes.
// Cost: 2 steps, one read of m bytes per rank.
#include "runtime/collectives/framework/single_copy.h"
#include "runtime/collectives/gather/costs.h"

namespace ibcoll::scatter::single_copy {

// Stands in the line of the rank that the block is for.
struct BlockAddress {
  uint64_t address = 0;
  uint64_t bytes = 0;
};

namespace {

// All that ranks may read: from the first block to the end of the last one in the buffer.
ConstBytes all_blocks(const ConstBlocks& send, int p) {
  uint64_t begin = UINT64_MAX, end = 0;
  for (int rank = 0; rank < p; ++rank) {
    if (send.size(rank) == 0) continue;
    begin = std::min(begin, send.offset(rank));
    end = std::max(end, send.offset(rank) + send.size(rank));
  }
  return begin < end ? ConstBytes(send.base + begin, end - begin) : ConstBytes();
}

void publish_addresses(Comm& c, const ConstBlocks& send) {
  NodeWindow& w = c.node();
  c.lend(all_blocks(send, c.size()));
  for (int rank = w.next(w.rank()); rank != w.rank(); rank = w.next(rank)) {
    const BlockAddress block = {reinterpret_cast<uint64_t>(send.base + send.offset(rank)), send.size(rank)};
    std::memcpy(w.area(rank, sizeof block), &block, sizeof block);
  }
}

Task run(Comm& c, Args a) {
  NodeWindow& w = c.node();
  const bool is_root = c.rank() == a.root;
  co_await c.next_step(sizeof(BlockAddress));
  if (is_root) publish_addresses(c, a.send);
  c.publish();
  if (is_root) {
    if (!a.in_place) c.copy_when_idle(a.buffer(), a.send[a.root]);
  } else {
    co_await c.published(a.root);
    BlockAddress block;
    std::memcpy(&block, w.area(w.rank(), sizeof block), sizeof block);
    if (block.bytes != a.bytes) {
      c.mismatch(a.root, block.bytes, a.bytes, "bytes of its block");
      co_return;
    }
    if (a.bytes > 0 && !co_await c.read(a.root, block.address, a.buffer())) co_return;
  }
  co_await c.next_step(0);
  c.publish();
  if (is_root) co_await all_have_read(c);
}

double cost_us(const Shape& s, const CostModel& m) {
  return 2 * m.step_us(s.p) + m.reads_us(1, static_cast<double>(gather::block_of(s)));
}

// All wait for a late root. Another rank reads alone.
double late_us(const Shape& s, const CostModel& m) {
  const double alone = m.step_us(s.p) + m.read_us + m.read_us_per_byte * static_cast<double>(gather::block_of(s));
  return (cost_us(s, m) + (s.p - 1) * alone) / s.p;
}

constexpr Algorithm row(ibcoll_collective_t collective) {
  return {.collective = collective,
          .name = "single_copy",
          .about = "all read their blocks in the root's memory at the same time; 2 steps, one copy",
          .run = run,
          .why_not = applies_with_single_copy,
          .cost_us = cost_us,
          .late_us = late_us,
          .uses_window = true};
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {row(IBCOLL_SCATTER), row(IBCOLL_SCATTERV)};
  return kRows;
}

}  // namespace ibcoll::scatter::single_copy
