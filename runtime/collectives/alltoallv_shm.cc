// SPDX-License-Identifier: BSD-3-Clause
// Alltoallv on one node. A rank publishes a table of its p blocks: size, and where the block is. Small blocks are beside the
// table in its line of the node window, or in its area, while there is room; others stay in its own memory, from where the
// receiver reads them with one copy. If any rank has such a block, a second step tells that nobody reads any more.
// Cost: 1 step (2 with large blocks), 1 or 2 copies per byte.
#include <cstring>
#include <utility>

#include "runtime/collectives/single_copy.h"

namespace ibcoll {
namespace {

enum Where : uint64_t { kLine, kArea, kPrivate };

struct Entry {
  uint64_t bytes : 62;
  uint64_t where : 2;
  uint64_t place;  // offset in the line or the area; address in private memory
};

// A line begins with a word that is not 0 when its rank has private blocks. The table follows if there is room for it, else
// the area begins with it.
constexpr uint64_t kWord = sizeof(uint64_t);

uint64_t table_bytes(int p) { return sizeof(Entry) * static_cast<uint64_t>(p); }
bool table_in_line(int p) { return kWord + table_bytes(p) <= NodeWindow::kInlineBytes; }

// What a rank publishes in this step.
struct Published {
  Published(NodeWindow& w, int rank)
      : line(w.area(rank, 0)),
        area(w.area(rank, w.area_bytes())),  // the line itself, where areas are no larger
        table(table_in_line(w.size()) ? line + kWord : area) {}
  std::byte* entry(int to) const { return table + table_bytes(to); }
  std::byte* line;
  std::byte* area;
  std::byte* table;
};

// Where the next block goes in a line or an area.
struct Room {
  bool fits(uint64_t bytes) const { return used <= end && bytes <= end - used; }
  uint64_t take(ConstBytes block) {
    Comm::copy(Bytes(base + used, block.size()), block);
    return std::exchange(used, used + (block.size() + 7) / 8 * 8);
  }
  std::byte* base;
  uint64_t end;
  uint64_t used;
};

// True when the block for a rank stays in private memory. Of two about as long as the limit both do or none does: a rank that
// first writes into the window and then reads takes as long as both.
bool stays(uint64_t sent, uint64_t received, uint64_t limit) {
  return sent >= limit || (sent >= limit / 2 && received >= limit);
}

// True when any block stays in private memory.
bool write_table(Comm& c, const Args& a, const Published& mine) {
  NodeWindow& w = c.node();
  const uint64_t window_below = w.read_from();
  const uint64_t table = table_bytes(c.size());
  const bool in_line = table_in_line(c.size());
  Room line{mine.line, NodeWindow::kInlineBytes, kWord + (in_line ? table : 0)};
  Room area{mine.area, mine.area == mine.line ? 0 : w.area_bytes(), in_line ? 0 : table};
  uint64_t read_later = 0;
  for (int i = 1; i < c.size(); ++i) {
    const int to = c.peer(i);
    const ConstBytes block = a.send[to];
    Entry entry{block.size(), kPrivate, 0};
    if (line.fits(block.size()))
      entry.where = kLine, entry.place = line.take(block);
    else if (!stays(block.size(), a.recv.size(to), window_below) && area.fits(block.size()))
      entry.where = kArea, entry.place = area.take(block);
    else
      entry.place = reinterpret_cast<uint64_t>(block.data()), read_later = 1;
    std::memcpy(mine.entry(to), &entry, sizeof entry);
  }
  std::memcpy(mine.line, &read_later, kWord);
  return read_later != 0;
}

// False: the collective has failed.
bool take_block(Comm& c, int from, const Published& theirs, Bytes block) {
  Entry entry;
  std::memcpy(&entry, theirs.entry(c.rank()), sizeof entry);
  const uint64_t end = entry.where == kLine ? NodeWindow::kInlineBytes : c.node().area_bytes();
  if (entry.bytes != block.size()) {
    c.mismatch(from, entry.bytes, block.size(), "bytes of its block");
    return false;
  }
  if (entry.where == kPrivate) return c.read(from, entry.place, block);
  if (!Room{nullptr, end, entry.place}.fits(entry.bytes)) {
    c.mismatch(from, entry.place, end, "place of its block");
    return false;
  }
  c.copy(block, ConstBytes((entry.where == kLine ? theirs.line : theirs.area) + entry.place, block.size()));
  return true;
}

Task alltoallv_shm(Comm& c, Args a) {
  NodeWindow& w = c.node();
  co_await c.next_step(w.area_bytes());
  const bool is_read = write_table(c, a, Published(w, c.rank()));
  c.publish();
  c.copy(a.recv[c.rank()], a.send[c.rank()]);
  bool any_read = is_read;
  for (int i = 1; i < c.size(); ++i) {
    const int from = c.peer(-i);
    co_await c.published(from);
    const Published theirs(w, from);
    uint64_t read_later = 0;
    std::memcpy(&read_later, theirs.line, kWord);
    any_read = any_read || read_later != 0;
    if (!take_block(c, from, theirs, a.recv[from])) co_return;
  }
  if (!any_read) co_return;
  co_await c.next_step(0);
  c.publish();
  if (is_read) co_await c.all_published();
}

const char* why_not(const Shape& s) {
  if (const char* const reason = applies_with_single_copy(s)) return reason;
  return s.area_bytes >= 2 * table_bytes(s.p) ? nullptr : "the node window is too small for the table";
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
