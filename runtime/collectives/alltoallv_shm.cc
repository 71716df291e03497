// SPDX-License-Identifier: BSD-3-Clause
// Alltoallv on one node. A rank publishes a table of its p blocks: size, and where the block is: in its area of the node
// window (small blocks, while there is room), or in its own memory, from where the receiver reads it with one copy. In
// the second step a rank tells that it reads no more; those whose memory was read wait for it.
// Cost: 1 step (2 with large blocks), 1 or 2 copies per byte.
#include <algorithm>
#include <cstring>

#include "runtime/collectives/algorithm.h"

namespace ibcoll {
namespace {

struct Entry {
  uint64_t bytes;
  uint64_t place;  // offset in the area, or address
  uint64_t in_area;
};

// Fills in this rank's table and the blocks that go with it. True when a block stays in private memory.
bool write_table(Comm& c, const Args& a, std::byte* area, uint64_t area_bytes) {
  auto* const table = reinterpret_cast<Entry*>(area);
  const uint64_t window_below = single_copy_from(c.node().crowded());
  uint64_t at = sizeof(Entry) * static_cast<uint64_t>(c.size());
  bool read_later = false;
  for (int i = 1; i < c.size(); ++i) {
    const int to = c.peer(i);
    const ConstBytes block = a.send[to];
    const bool fits = block.size() < window_below && block.size() <= area_bytes - at;
    table[to] = {block.size(), fits ? at : reinterpret_cast<uint64_t>(block.data()), fits};
    read_later = read_later || !fits;
    if (!fits) continue;
    c.copy(Bytes(area + at, block.size()), block);
    at += (block.size() + 7) / 8 * 8;
    at = std::min(at, area_bytes);
  }
  return read_later;
}

Task alltoallv_shm(Comm& c, Args a) {
  NodeWindow& w = c.node();
  co_await c.next_step(w.area_bytes());
  const bool read_later = write_table(c, a, w.area(c.rank(), w.area_bytes()), w.area_bytes());
  c.publish();
  c.copy(a.recv[c.rank()], a.send[c.rank()]);
  for (int i = 1; i < c.size(); ++i) {
    const int from = c.peer(-i);
    co_await c.published(from);
    const std::byte* const area = w.area(from, w.area_bytes());
    Entry entry;
    std::memcpy(&entry, area + sizeof(Entry) * static_cast<uint64_t>(c.rank()), sizeof entry);
    const Bytes block = a.recv[from];
    if (entry.bytes != block.size())
      c.mismatch(from, entry.bytes, block.size(), "bytes of its block");
    else if (entry.in_area && entry.place + entry.bytes <= w.area_bytes())
      c.copy(block, ConstBytes(area + entry.place, entry.bytes));
    else
      c.read(from, entry.place, block);
  }
  co_await c.next_step(0);
  c.publish();
  for (int i = 1; i < c.size() && read_later; ++i) co_await c.published(c.peer(i));
}

const char* why_not(const Shape& s) {
  if (const char* const reason = applies_on_one_node(s)) return reason;
  if (!s.single_copy) return "the kernel does not let the ranks read each other's memory";
  return s.area_bytes >= 2 * sizeof(Entry) * static_cast<uint64_t>(s.p) ? nullptr
                                                                        : "the node window is too small for the table";
}

double cost_us(const Shape& s, const CostModel& m) {
  return 1.5 * m.step_us(s.p) + m.copies_us(static_cast<double>(s.bytes) * s.p);
}

}  // namespace

extern const Algorithm kAlltoallvShm{IBCOLL_ALLTOALLV,
                                     "shm",
                                     "small blocks through the node window, large ones by single-copy reads",
                                     alltoallv_shm,
                                     why_not,
                                     cost_us,
                                     true};

}  // namespace ibcoll
