// SPDX-License-Identifier: BSD-3-Clause
// Alltoall on one node. Blocks that fit side by side into an area go through the node window: every rank writes all its
// blocks, then picks its own block from every other rank's area. Larger ones move with one copy: ranks publish where
// their send buffer is and read from each other's memory; a second step tells that nobody reads any more.
// Cost: window: 1 step and 2 copies per p m / area; single copy: 2 steps, p - 1 reads.
#include <algorithm>
#include <cstring>

#include "runtime/collectives/algorithm.h"

namespace ibcoll {
namespace {

bool through_window(bool single_copy, bool crowded, uint64_t bytes) {
  return !single_copy || bytes < single_copy_from(crowded);
}

Task alltoall_shm_window(Comm& c, Args a) {
  NodeWindow& w = c.node();
  const auto p = static_cast<uint64_t>(c.size());
  const uint64_t cell = std::min(w.area_bytes() / p / 8 * 8, a.recv.bytes);
  for (uint64_t at = 0; at < a.recv.bytes; at += cell) {
    co_await c.next_step(cell * p);
    std::byte* const mine = w.area(c.rank(), cell * p);
    for (int i = 1; i < c.size(); ++i) {
      const int to = c.peer(i);
      const ConstBytes block = part(a.send[to], at, cell);
      c.copy(Bytes(mine + cell * static_cast<uint64_t>(to), block.size()), block);
    }
    c.publish();
    for (int i = 1; i < c.size(); ++i) {
      const int from = c.peer(-i);
      const Bytes block = part(a.recv[from], at, cell);
      co_await c.published(from);
      c.copy(block, ConstBytes(w.area(from, cell * p) + cell * static_cast<uint64_t>(c.rank()), block.size()));
    }
  }
  c.copy(a.recv[c.rank()], a.send[c.rank()]);
}

Task alltoall_shm_single_copy(Comm& c, Args a) {
  NodeWindow& w = c.node();
  co_await c.next_step(sizeof(uint64_t));
  const auto address = reinterpret_cast<uint64_t>(a.send.base);
  std::memcpy(w.area(c.rank(), sizeof address), &address, sizeof address);
  c.publish();
  c.copy(a.recv[c.rank()], a.send[c.rank()]);
  for (int i = 1; i < c.size(); ++i) {
    const int from = c.peer(-i);
    co_await c.published(from);
    uint64_t theirs = 0;
    std::memcpy(&theirs, w.area(from, sizeof theirs), sizeof theirs);
    c.read(from, theirs + a.recv.bytes * static_cast<uint64_t>(c.rank()), a.recv[from]);
  }
  co_await c.next_step(0);
  c.publish();
  for (int i = 1; i < c.size(); ++i) co_await c.published(c.peer(i));
}

Task alltoall_shm(Comm& c, Args a) {
  if (through_window(c.single_copy(), c.node().crowded(), a.recv.bytes)) return alltoall_shm_window(c, a);
  return alltoall_shm_single_copy(c, a);
}

const char* why_not(const Shape& s) {
  if (const char* const reason = applies_on_one_node(s)) return reason;
  return s.area_bytes / static_cast<uint64_t>(s.p) >= 8 ? nullptr
                                                        : "the node window has less than 8 bytes per pair of ranks";
}

double cost_us(const Shape& s, const CostModel& m) {
  const double sent = static_cast<double>(s.bytes) * s.p;
  if (through_window(s.single_copy, s.crowded, s.bytes))
    return (1 + sent / static_cast<double>(s.area_bytes)) * m.step_us(s.p) + m.copies_us(2 * sent);
  return 2 * m.step_us(s.p) + m.copies_us(sent) + m.sharing * s.p * m.single_copy_us;
}

}  // namespace

extern const Algorithm kAlltoallShm{
    IBCOLL_ALLTOALL, "shm", "through the node window, large blocks by single-copy reads", alltoall_shm, why_not,
    cost_us,         true};

}  // namespace ibcoll
