// SPDX-License-Identifier: BSD-3-Clause
// Alltoallv on one node. A rank publishes a table of its p blocks: size, and where the block is. Small blocks are
// beside the table in its line of the node window, or in its area, while there is room; others stay in its own memory,
// from where the receiver reads them with one copy. If any rank has such a block, there is a last step, which a rank
// publishes when it has read all. In between, blocks that are better copied than read, although they are large, pass
// through the areas piece by piece.
// Cost: 1 step, 1 more if any block is read, and max m / cell for those in pieces; 1 or 2 copies per byte.
#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/collectives/framework/single_copy.h"

namespace ibcoll::alltoallv::shm {
namespace {

enum Where : uint64_t { kLine, kArea, kPrivate, kPieces };

struct Entry {
  uint64_t bytes : 62;
  uint64_t where : 2;
  uint64_t location;  // offset in the line or the area; address in private memory
};

// A line begins with what its rank still has to do. The table follows if there is room for it, else the area begins
// with it.
struct Rest {
  uint32_t is_read = 0;  // not 0: it has private blocks
  uint32_t pieces = 0;   // of its longest block in pieces

  void add(const Rest& other) {
    is_read |= other.is_read;
    pieces = std::max(pieces, other.pieces);
  }
};

uint64_t table_bytes(int p) { return sizeof(Entry) * static_cast<uint64_t>(p); }
bool table_in_line(int p) { return sizeof(Rest) + table_bytes(p) <= NodeWindow::kInlineBytes; }

// The memory that a rank publishes in this step.
struct Published {
  Published(NodeWindow& w, int rank)
      : line(w.area(rank, 0)),
        area(w.area(rank, w.area_bytes())),  // the line itself, where areas are no larger
        table(table_in_line(w.size()) ? line + sizeof(Rest) : area) {}
  std::byte* entry(int to) const { return table + table_bytes(to); }
  std::byte* line;
  std::byte* area;
  std::byte* table;
};

// The room for the next block in a line or an area.
struct Room {
  bool fits(uint64_t bytes) const { return used <= end && bytes <= end - used; }
  uint64_t take(NodeWindow& w, ConstBytes block, int reader) {
    w.write(Bytes(base + used, block.size()), block, reader);
    return std::exchange(used, used + (block.size() + 7) / 8 * 8);
  }
  std::byte* base;
  uint64_t end;
  uint64_t used;
};

// True when the block for a rank stays in private memory. Of two about as long as the limit both do or none does: a
// rank that first writes into the window and then reads takes as long as both.
bool stays(uint64_t sent, uint64_t received, uint64_t limit) {
  return sent >= limit || (sent >= limit / 2 && received >= limit);
}

// Each peer has a cell of an area for pieces of its block.
uint64_t cell_bytes(const NodeWindow& w) { return w.area_bytes() / static_cast<uint64_t>(w.size() - 1) / 8 * 8; }
std::byte* cell(Comm& c, int from, int to) {
  NodeWindow& w = c.node();
  const int distance = to > from ? to - from : to - from + c.size();
  return w.area(from, w.area_bytes()) + cell_bytes(w) * static_cast<uint64_t>(distance - 1);
}
// Both ends of a block know it by its size.
bool in_pieces(const NodeWindow& w, uint64_t bytes) {
  return bytes > 0 && w.limits().streams(bytes) && cell_bytes(w) > 0;
}

// From the first byte of the first block to the last one of the last.
ConstBytes all_blocks(const ConstBlocks& blocks, int p) {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  for (int i = 0; i < p; ++i) {
    const ConstBytes block = blocks[i];
    if (block.empty()) continue;
    if (!begin || block.data() < begin) begin = block.data();
    end = std::max(end, block.data() + block.size());
  }
  return begin ? ConstBytes(begin, end) : ConstBytes();
}

Rest write_table(NodeWindow& w, const Args& a, const Published& mine) {
  const uint64_t window_below = w.limits().read_from;
  const uint64_t table = table_bytes(w.size());
  const bool in_line = table_in_line(w.size());
  Room line{mine.line, NodeWindow::kInlineBytes, sizeof(Rest) + (in_line ? table : 0)};
  Room area{mine.area, mine.area == mine.line ? 0 : w.area_bytes(), in_line ? 0 : table};
  Rest rest;
  for (int to = w.next(w.rank()); to != w.rank(); to = w.next(to)) {
    const ConstBytes block = a.send[to];
    const uint64_t read_back = in_pieces(w, a.recv.size(to)) ? 0 : a.recv.size(to);
    Entry entry{block.size(), kPrivate, 0};
    if (in_pieces(w, block.size()))
      entry.where = kPieces, rest.add({0, static_cast<uint32_t>((block.size() - 1) / cell_bytes(w) + 1)});
    else if (line.fits(block.size()))
      entry.where = kLine, entry.location = line.take(w, block, to);
    else if (!stays(block.size(), read_back, window_below) && area.fits(block.size()))
      entry.where = kArea, entry.location = area.take(w, block, to);
    else
      entry.location = reinterpret_cast<uint64_t>(block.data()), rest.add({1, 0});
    std::memcpy(mine.entry(to), &entry, sizeof entry);
  }
  std::memcpy(mine.line, &rest, sizeof rest);
  return rest;
}

// A call whose blocks are all in the line of this rank, and whose peers have published such blocks only, is one step.
void write(NodeWindow& w, const Args& a) { (void)write_table(w, a, Published(w, w.rank())); }
Difference take(NodeWindow& w, const Args& a) {
  for (int from = w.next(w.rank()); from != w.rank(); from = w.next(from)) {
    const Published theirs(w, from);
    const Bytes block = a.recv[from];
    Rest rest;
    Entry entry;
    std::memcpy(&rest, theirs.line, sizeof rest);
    std::memcpy(&entry, theirs.entry(w.rank()), sizeof entry);
    const bool in_line =
        entry.where == kLine && Room{nullptr, NodeWindow::kInlineBytes, entry.location}.fits(entry.bytes);
    if (!in_line || entry.bytes != block.size() || rest.is_read != 0 || rest.pieces != 0)
      return {from, entry.bytes, block.size()};
    Comm::copy(block, ConstBytes(theirs.line + entry.location, block.size()));
  }
  Comm::copy(a.recv[w.rank()], a.send[w.rank()]);
  return {};
}

// False: the collective has failed. `address`: where the block is to be read; else 0.
bool take_block(Comm& c, int from, const Published& theirs, Bytes block, uint64_t& address) {
  Entry entry;
  std::memcpy(&entry, theirs.entry(c.rank()), sizeof entry);
  const uint64_t end = entry.where == kLine ? NodeWindow::kInlineBytes : c.node().area_bytes();
  if (entry.bytes != block.size() || (entry.where == kPieces) != in_pieces(c.node(), block.size())) {
    c.mismatch(from, entry.bytes, block.size(), "bytes of its block");
    return false;
  }
  if (entry.where == kPieces) return true;  // to come
  if (entry.where == kPrivate) {
    address = entry.location;
    return true;
  }
  if (!Room{nullptr, end, entry.location}.fits(entry.bytes)) {
    c.mismatch(from, entry.location, end, "offset of its block");
    return false;
  }
  c.copy(block, ConstBytes((entry.where == kLine ? theirs.line : theirs.area) + entry.location, block.size()));
  return true;
}

// `published`: this rank has published its blocks, which are all in its line.
Task exchange(Comm& c, Args a, bool published) {
  NodeWindow& w = c.node();
  Rest mine;
  if (!published) {
    co_await c.next_step(w.area_bytes());
    mine = write_table(w, a, Published(w, c.rank()));
    if (mine.is_read) c.lend(all_blocks(a.send, c.size()));
    c.publish();
  }
  c.copy(a.recv[c.rank()], a.send[c.rank()]);
  Rest rest = mine;  // of all ranks
  for (int i = 1; i < c.size(); ++i) {
    const int from = c.peer(-i);
    co_await c.published(from);
    const Published table(w, from);
    Rest theirs;
    std::memcpy(&theirs, table.line, sizeof theirs);
    rest.add(theirs);
    uint64_t address = 0;
    if (!take_block(c, from, table, a.recv[from], address)) co_return;
    if (address != 0 && !co_await c.read(from, address, a.recv[from])) co_return;
  }
  const uint64_t length = rest.pieces > 0 ? cell_bytes(w) : 0;
  for (uint64_t at = 0; at < rest.pieces * length; at += length) {
    co_await c.next_step(w.area_bytes());
    for (int i = 1; i < c.size(); ++i) {
      const int to = c.peer(i);
      const ConstBytes piece = part(a.send[to], at, length);
      if (in_pieces(w, a.send.size(to))) w.write(Bytes(cell(c, c.rank(), to), piece.size()), piece, to);
    }
    c.publish();
    for (int i = 1; i < c.size(); ++i) {
      const int from = c.peer(-i);
      const Bytes piece = part(a.recv[from], at, length);
      if (piece.empty() || !in_pieces(w, a.recv.size(from))) continue;
      co_await c.published(from);
      c.copy(piece, ConstBytes(cell(c, from, c.rank()), piece.size()));
    }
  }
  if (!rest.is_read) co_return;
  co_await c.next_step(0);
  c.publish();
  if (mine.is_read) co_await all_have_read(c);
}

Task run(Comm& c, Args a) { return exchange(c, a, false); }

OneStep one_step(const Args& a, const NodeWindow& w) {
  if (a.in_place || !table_in_line(w.size())) return {};
  Room line{nullptr, NodeWindow::kInlineBytes, sizeof(Rest) + table_bytes(w.size())};
  for (int to = 0; to < w.size(); ++to) {
    const uint64_t bytes = to == w.rank() ? 0 : a.send.size(to);
    if (in_pieces(w, bytes) || !line.fits(bytes)) return {};
    line.used += (bytes + 7) / 8 * 8;
  }
  return {.kind = OneStep::Kind::kAll,
          .end = w.size(),
          .bytes = w.area_bytes(),
          .write = write,
          .finish = take,
          .rest = [](Comm& c, Args args) { return exchange(c, args, true); }};
}

const char* why_not(const Shape& s) {
  if (const char* const reason = applies_with_single_copy(s)) return reason;
  return s.area_bytes >= 2 * table_bytes(s.p) ? nullptr : "the node window is too small for the table";
}

double cost_us(const Shape& s, const CostModel& m) {
  return cost::kStepsOfAlltoallv * m.step_us(s.p) + m.copies_us(static_cast<double>(s.bytes) * s.p);
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {
      {.collective = IBCOLL_ALLTOALLV,
       .name = "shm",
       .about = "small blocks through the node window, large ones by single-copy reads or in pieces",
       .run = run,
       .why_not = why_not,
       .cost_us = cost_us,
       .uses_window = true,
       .one_step = one_step}};
  return kRows;
}

}  // namespace ibcoll::alltoallv::shm
