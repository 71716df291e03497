// SPDX-License-Identifier: BSD-3-Clause
// Allgather(v), shm_ring: every block is once in the shared memory of each node. (1) Each rank writes its block there.
// (2) Each rank sends it from there to its counterpart on the next node, which forwards what arrives, until it has been
//     on all nodes.
// (3) The ranks copy the blocks out of it, as they land.
// Source: "GASPI-SHAN Benchmarks - AllGather(V)", EPiGRAM-HS: a rank sends one message per node, not per rank.
//
// With K ranks on the emptiest node there are K rings of counterparts. Local rank l of a node uses ring l mod K, so
// that a rank of a fuller node may carry several blocks, in one message. A message moves in pieces of at most B bytes,
// each forwarded as it lands. Blocks that the node window has no room for move in several rounds.
// Messages: N - 1 for each of the first K ranks of a node, per round. Cost: (N - 1) alpha + beta (n - n/N).
#include <algorithm>
#include <cmath>

#include "runtime/collectives/framework/algorithm.h"
#include "runtime/collectives/framework/node_rows.h"

namespace ibcoll::allgather::shm_ring {
namespace {

// In a round a ring carries one message for each node: the cells of some ranks of the node, one after the other. It
// lies at the same offset in the area of the ring's local rank on all nodes.
class Rings {
 public:
  Rings(Comm& c, const Args& a) noexcept
      : comm_(c), a_(a), nodes_(c.placement()), count_(nodes_.fewest_local()), here_(nodes_.node_of(c.rank())) {
    offsets_ = c.scratch_array<uint64_t>(static_cast<size_t>(count_ * (nodes() + 1)));
    uint64_t most = 0;  // blocks of a ring
    for (int ring = 0; ring < count_; ++ring) {
      uint64_t blocks = 0;
      for (int node = 0; node < nodes(); ++node) each(node, ring, [&](int rank) { blocks += a.recv.size(rank) > 0; });
      most = std::max(most, blocks);
    }
    if (most == 0) return;
    cell_ = std::max<uint64_t>(1, c.node().area_bytes() / most);
    cell_ = std::min(cell_ < 64 ? cell_ : cell_ / 64 * 64, a.longest(c.size()));
    step_bytes_ = cell_ * most;
  }

  explicit operator bool() const noexcept { return offsets_ != nullptr; }
  int count() const noexcept { return count_; }
  int nodes() const noexcept { return nodes_.node_count(); }
  uint64_t cell() const noexcept { return cell_; }  // of a block, in a round
  uint64_t step_bytes() const noexcept { return step_bytes_; }
  // The node that comes i after this one (i < 0: before).
  int node(int i) const noexcept { return (here_ + i + nodes()) % nodes(); }
  int rank(int node, int ring) const noexcept { return nodes_.ranks_of(node)[static_cast<size_t>(ring)]; }

  // The round moves bytes from `at` of each block.
  void begin(uint64_t at) noexcept {
    at_ = at;
    for (int ring = 0; ring < count_; ++ring) {
      uint64_t sum = 0;
      for (int node = 0; node < nodes(); ++node) {
        offset(ring, node) = sum;
        each(node, ring, [&](int rank) { sum += cell_of(rank).size(); });
      }
      offset(ring, nodes()) = sum;
    }
  }
  // In this node's window, in the current step.
  Bytes message(int node, int ring) const noexcept {
    const uint64_t from = offset(ring, node);
    return {comm_.node().area(ring, step_bytes_) + from, offset(ring, node + 1) - from};
  }
  // Bytes that the ring carries past this node.
  uint64_t coming(int ring) const noexcept { return offset(ring, nodes()) - message(here_, ring).size(); }

  void write_own(ConstBytes own) const noexcept {
    const int ring = comm_.node().rank() % count_;
    std::byte* to = message(here_, ring).data();
    each(here_, ring, [&](int rank) {
      if (rank == comm_.rank()) Comm::copy(Bytes(to, cell_of(rank).size()), part(own, at_, cell_));
      to += cell_of(rank).size();
    });
  }
  // A piece of a message goes from the window to where it belongs.
  void copy_out(int node, int ring, uint64_t from, uint64_t most) const noexcept {
    const Bytes all = message(node, ring);
    const uint64_t to = std::min<uint64_t>(all.size(), from + most);
    uint64_t begin = 0;
    each(node, ring, [&](int rank) {
      const Bytes cell = cell_of(rank);
      const uint64_t first = std::max(from, begin), last = std::min(to, begin + cell.size());
      if (first < last && rank != comm_.rank())
        Comm::copy(cell.subspan(first - begin, last - first), ConstBytes(all.subspan(first, last - first)));
      begin += cell.size();
    });
  }

 private:
  template <typename Visit>
  void each(int node, int ring, Visit visit) const noexcept {
    const std::span<const int> ranks = nodes_.ranks_of(node);
    for (size_t l = static_cast<size_t>(ring); l < ranks.size(); l += static_cast<size_t>(count_)) visit(ranks[l]);
  }
  Bytes cell_of(int rank) const noexcept { return part(a_.recv[rank], at_, cell_); }
  uint64_t& offset(int ring, int node) const noexcept { return offsets_[ring * (nodes() + 1) + node]; }

  Comm& comm_;
  const Args& a_;
  const Placement& nodes_;
  int count_;
  int here_;
  uint64_t cell_ = 1;
  uint64_t step_bytes_ = 0;
  uint64_t at_ = 0;
  uint64_t* offsets_;
};

void publish(Comm& c, bool more) {
  if (more)
    c.publish_part();
  else
    c.publish();
}

// This rank's ring in a round: sends the node's message on, and those of other nodes. Publishes a part for each piece
// that lands, after one for its own cell.
Task carry(Comm& c, const Rings* rings, uint64_t piece) {
  const int ring = c.node().rank(), nodes = rings->nodes();
  const int next = rings->rank(rings->node(1), ring), before = rings->rank(rings->node(-1), ring);
  for (int i = 1; i < nodes; ++i) c.announce(before, rings->message(rings->node(-i), ring));
  uint64_t coming = rings->coming(ring);
  publish(c, coming > 0);
  for (int local = ring + rings->count(); local < c.node().size(); local += rings->count()) co_await c.published(local);
  for (int i = 0; i < nodes; ++i) {
    const int node = rings->node(-i);
    const Bytes message = rings->message(node, ring);
    for (uint64_t at = 0; at < message.size(); at += piece) {
      const Bytes now = part(message, at, piece);
      if (i > 0) {
        coming -= now.size();
        co_await c.received_from(before, coming);
      }
      if (i < nodes - 1) c.put_piece(next, now, message.size());
      if (i == 0) continue;
      publish(c, coming > 0);
      rings->copy_out(node, ring, at, piece);
    }
  }
}

// Copies out what the ranks of this node have written, and what all rings but the rank's own bring.
Task copy_others(Comm& c, const Rings* rings, uint64_t* parts, uint64_t piece) {
  for (int local = c.node().next(c.node().rank()); local != c.node().rank(); local = c.node().next(local))
    co_await c.published(local, 1);
  for (int ring = 0; ring < rings->count(); ++ring) {
    parts[ring] = 1;
    rings->copy_out(rings->node(0), ring, 0, rings->step_bytes());
  }
  for (int i = 1; i < rings->nodes(); ++i)
    for (int ring = 0; ring < rings->count(); ++ring) {
      if (ring == c.node().rank()) continue;
      const uint64_t bytes = rings->message(rings->node(-i), ring).size();
      for (uint64_t at = 0; at < bytes; at += piece) {
        co_await c.published(ring, ++parts[ring]);
        rings->copy_out(rings->node(-i), ring, at, piece);
      }
    }
}

Task run(Comm& c, Args a) {
  Rings rings(c, a);
  auto* const parts = c.scratch_array<uint64_t>(static_cast<size_t>(rings.count()));
  if (!rings || !parts) co_return;
  const ConstBytes own = a.own(c.rank());
  const uint64_t longest = a.longest(c.size());
  for (uint64_t at = 0; at < longest; at += rings.cell()) {
    rings.begin(at);
    co_await c.next_step(rings.step_bytes());
    rings.write_own(own);
    if (c.node().rank() < rings.count())
      co_await carry(c, &rings, a.parameter);
    else
      c.publish();
    co_await copy_others(c, &rings, parts, a.parameter);
    co_await c.flushed();
  }
  c.copy(a.recv[c.rank()], own);
}

// Blocks of a ring, one per rank that uses it.
uint64_t blocks_of_ring(const Shape& s) {
  const int fewest = std::max(1, s.fewest_local);
  return static_cast<uint64_t>(s.nodes) * static_cast<uint64_t>(std::max(1, (s.most_local + fewest - 1) / fewest));
}

const char* why_not(const Shape& s) { return applies_to_nodes_of_ranks(s, s.area_bytes / blocks_of_ring(s)); }

// The bytes of a block that a round moves.
uint64_t cell_bytes(const Shape& s) { return std::max<uint64_t>(1, s.area_bytes / blocks_of_ring(s)); }

bool regular(const Shape& s) { return s.total == s.bytes * static_cast<uint64_t>(s.p); }

// Each round: the way around all nodes, and a step of the window. Bytes: those that come to a node, and where one long
// block is cut, its first piece once more for each node on the way.
double cost_us(const Shape& s, const CostModel& m) {
  const double nodes = s.nodes, longest = static_cast<double>(s.bytes), total = static_cast<double>(s.total);
  const double piece = static_cast<double>(std::max<uint64_t>(1, std::min(s.parameter, s.bytes)));
  const double pieces = regular(s) ? 0 : longest / piece;
  const double around = (nodes - 1 + pieces) * m.message_us(0) + 2 * m.step_us(s.most_local);
  const double filling = regular(s) ? 0 : (nodes - 2) * piece;
  return rounds_of(s.bytes, cell_bytes(s)) * around + m.beta_us * (total * (nodes - 1) / nodes + filling) +
         m.copies_us(longest) + m.shared_copies_us(total);
}

constexpr Parameter kPiece = {Parameter::Unit::kBytes, "piece", 64, uint64_t{1} << 40};

// Blocks of the same size everywhere are not cut: all links are busy. One long block goes along N nodes as a pipeline.
uint64_t choose(const Shape& s, const CostModel& m) {
  const uint64_t whole = std::clamp(s.area_bytes, kPiece.least, kPiece.most);
  if (regular(s) || s.nodes <= 2) return whole;
  const double best = std::sqrt(static_cast<double>(s.bytes) * m.message_us(0) / (m.beta_us * (s.nodes - 2)));
  return static_cast<uint64_t>(std::clamp(best, static_cast<double>(kPiece.least), static_cast<double>(whole)));
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr auto kRows =
      two_rows({.collective = IBCOLL_ALLGATHER,
                .name = "shm_ring",
                .about = "GASPI-SHAN; each block once per node, counterparts forward; (N-1) alpha + beta (n - n/N)",
                .parameter = kPiece,
                .run = run,
                .why_not = why_not,
                .choose = choose,
                .cost_us = cost_us,
                .uses_window = true},
               IBCOLL_ALLGATHERV);
  return kRows;
}

}  // namespace ibcoll::allgather::shm_ring
