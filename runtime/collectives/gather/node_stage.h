// SPDX-License-Identifier: BSD-3-Clause
// Gather(v) and scatter(v) within a node, in steps of the node window (node_cells.h). All blocks of a node go through one
// of its ranks, its gateway: the root on the root's node, the leader elsewhere. Blocks of more than longest() bytes do
// not use the window: they go straight to or from the root.
#pragma once

#include "runtime/collectives/gather/costs.h"
#include "runtime/collectives/gather/node_cells.h"
#include "runtime/collectives/gather/tree.h"

namespace ibcoll::gather {

class NodeStage {
 public:
  NodeStage(Comm& c, int root, uint64_t threshold) noexcept
      : comm_(c),
        window_(c.node()),
        cells_(c.node(), threshold),
        nodes_(c.placement()),
        root_(root),
        here_(nodes_.node_of(c.rank())) {}

  uint64_t longest() const noexcept { return cells_.longest(); }
  int root_node() const noexcept { return nodes_.node_of(root_); }
  std::span<const int> locals() const noexcept { return nodes_.ranks_of(here_); }
  int gateway_of(int node) const noexcept { return node == root_node() ? root_ : nodes_.leader_of(node); }
  // The rank of this node that exchanges with other nodes, and its index in the window.
  int gateway() const noexcept { return gateway_of(here_); }
  int local_gateway() const noexcept {
    int local = 0;
    while (locals()[static_cast<size_t>(local)] != gateway()) ++local;
    return local;
  }
  // The gateways of all nodes, in the order of these. nullptr: the collective has failed. Only for gateways.
  Comm* gateways() noexcept {
    const int count = nodes_.node_count();
    auto* const ranks = comm_.scratch_array<int>(static_cast<uint64_t>(count));
    if (!ranks) return nullptr;
    for (int node = 0; node < count; ++node) ranks[node] = gateway_of(node);
    return &comm_.among({ranks, static_cast<size_t>(count)});
  }
  Trees trees(Sizes sizes, uint64_t block, uint64_t threshold) const noexcept {
    return {root_node(), TreeShape::kOrdered, sizes, block, threshold, {&nodes_, longest()}};
  }

  // The argument of next_own_step() for a rank that writes a block of this size; 0: a size at most.
  uint64_t step_bytes(uint64_t block = 0) const noexcept { return NodeCells::step_bytes(fits(block) ? block : 0); }

  void write_size(uint64_t bytes) noexcept { cells_.write_size(window_.rank(), bytes); }
  uint64_t size(int local) const noexcept { return cells_.size(local); }
  bool fits(uint64_t bytes) const noexcept { return cells_.fits(bytes); }

  // The blocks of a node that travel together, in rank order.
  template <typename Each>
  void each_block(const ConstBlocks& blocks, int node, Each each) const {
    for (const int rank : nodes_.ranks_of(node))
      if (fits(blocks.size(rank))) each(rank);
  }
  uint64_t bytes_of(const ConstBlocks& blocks, int node) const {
    uint64_t sum = 0;
    each_block(blocks, node, [&](int rank) { sum += blocks.size(rank); });
    return sum;
  }
  template <typename Each>
  void each_stretch(const ConstBlocks& blocks, int node, Each each) const {
    each_stretch_of(
        blocks, [&](auto visit) { each_block(blocks, node, visit); }, each);
  }

  // ---- gather(v)

  // Moves what the window does not take: long blocks go straight to the root, which has its own block already.
  void move_long(const Args& a, ConstBytes own) noexcept {
    if (comm_.rank() != root_) {
      if (own.size() > longest()) comm_.put(root_, own);
      return;
    }
    for (int i = 1; i < comm_.size(); ++i)
      if (a.recv.size(comm_.peer(i)) > longest()) comm_.announce(comm_.peer(i), a.recv[comm_.peer(i)]);
    Comm::copy(a.recv[root_], own);
  }
  // In a step of the window.
  void write(ConstBytes own) noexcept {
    if (comm_.rank() == gateway())
      write_size(own.size());
    else
      cells_.write(window_.rank(), own, local_gateway());
  }
  // At the gateway: the blocks of the node, side by side.
  void pack(ConstBytes own, std::byte* to) const noexcept {
    for (size_t local = 0; local < locals().size(); ++local) {
      const uint64_t bytes = size(static_cast<int>(local));
      if (!fits(bytes)) continue;
      const bool mine = locals()[local] == comm_.rank();
      if (mine)
        Comm::copy(Bytes(to, bytes), own);
      else
        cells_.take(static_cast<int>(local), Bytes(to, bytes));
      to += bytes;
    }
  }
  // At the root: those of the others of its node.
  void place(const Blocks& recv) const noexcept {
    for (size_t local = 0; local < locals().size(); ++local) {
      const int rank = locals()[local];
      if (rank != root_ && fits(recv.size(rank))) cells_.take(static_cast<int>(local), recv[rank]);
    }
  }

  // ---- scatter(v), in a step of the window

  // At the root: the sizes and, where they travel so, the blocks of the others of its node.
  void place_others(const ConstBlocks& send) noexcept {
    cells_.write_others([&](int local) { return send[locals()[static_cast<size_t>(local)]]; });
  }
  // The same at a leader, from the blocks of the node side by side. `sizes`: of its ranks.
  void unpack(const uint64_t* sizes, const std::byte* from, Bytes own) noexcept {
    cells_.write_others([&](int local) {
      const ConstBytes block(from, sizes[local]);
      if (fits(block.size())) {
        if (local == window_.rank()) Comm::copy(own, block);
        from += block.size();
      }
      return block;
    });
  }
  // The longest block that the gateway writes for others, for step_bytes(). `size_of`: of a local rank.
  template <typename SizeOf>
  uint64_t longest_written(SizeOf size_of) const {
    uint64_t longest = 0;
    for (int local = 0; local < window_.size(); ++local)
      if (const uint64_t bytes = size_of(local); local != window_.rank() && fits(bytes))
        longest = std::max(longest, bytes);
    return longest;
  }
  // Not at the gateway, which has published: takes the block. False: it has another size; the collective has failed.
  bool take(Bytes own) noexcept {
    const NodeCells::Cell sent = cells_.find(local_gateway());
    if (sent.bytes != own.size()) {
      comm_.mismatch(root_, sent.bytes, own.size(), "bytes of its block");
      return false;
    }
    if (sent.data) Comm::copy(own, ConstBytes(sent.data, own.size()));
    return true;
  }

  // Describes what the node sends or receives as a unit, from the sizes that its ranks have published.
  CubeData about() const noexcept {
    CubeData sum;
    sum.gather_root = static_cast<uint64_t>(here_);
    for (size_t local = 0; local < locals().size(); ++local) {
      const uint64_t bytes = size(static_cast<int>(local));
      sum.add(locals()[local], bytes);
      if (fits(bytes)) sum.root_bytes += bytes;
    }
    return sum;
  }
  // At the root: false when its list has other sizes for the ranks of its node; then the collective has failed.
  bool agrees(const ConstBlocks& blocks) noexcept {
    for (size_t local = 0; local < locals().size(); ++local) {
      const int rank = locals()[local];
      const uint64_t theirs = size(static_cast<int>(local)), mine = blocks.size(rank);
      if (rank == root_ || theirs == mine) continue;
      comm_.mismatch(rank, theirs, mine, "bytes of its block");
      return false;
    }
    return true;
  }

 private:
  Comm& comm_;
  NodeWindow& window_;
  NodeCells cells_;
  const Placement& nodes_;
  int root_;
  int here_;
};

// Through the window of a node of `most_local` ranks: all write, one reads, or the other way round.
inline double node_stage_us(const Shape& s, const CostModel& m, uint64_t block) {
  return m.step_us(s.most_local) + m.copies_us(static_cast<double>(block)) +
         m.copy_us_of(0) * static_cast<double>(block) * (s.most_local - 1);
}

// Blocks that are too long for the window all go straight, as in the linear algorithms.
inline double straight_us(const Shape& s, const CostModel& m) { return cost::kSecondChoice * linear_us(s, m); }

// Also where the leaders send straight to the root, each a message, and one more where the root compares sizes.
inline double shm_linear_us(const Shape& s, const CostModel& m) {
  const uint64_t block = block_of(s);
  if (block > std::min(s.parameter, s.area_bytes)) return m.step_us(s.most_local) + straight_us(s, m);
  const double more = s.sizes_known ? 0 : m.stream_us(static_cast<double>(sizeof(uint64_t)) * s.most_local);
  const double node = static_cast<double>(block) * s.most_local;
  return node_stage_us(s, m, block) + m.message_us(0) + (s.nodes - 1) * (m.stream_us(node) + more);
}

inline double shm_tree_us(const Shape& s, const CostModel& m, int steps, bool built) {
  const uint64_t block = block_of(s);
  const double above = (steps - 1) * m.step_us(s.most_local);
  if (block > std::min(s.parameter, s.area_bytes)) return above + m.step_us(s.most_local) + straight_us(s, m);
  const double node = static_cast<double>(block) * s.most_local;
  return above + node_stage_us(s, m, block) + (built ? built_of_us(s.nodes, node, m) : tree_of_us(s.nodes, node, m));
}

// The time that a gather, or a scatter, takes from the arrival of one late rank on. `between`: the part of it between
// nodes, if the late rank talks for its node. Only the root of a single node reads all blocks, or writes them.
inline bool goes_straight(const Shape& s) { return block_of(s) > std::min(s.parameter, s.area_bytes); }
inline double late_node_gather_us(const Shape& s, const CostModel& model, double between) {
  if (goes_straight(s))  // the root asks for all blocks, if it is the late one
    return late_up_us(s, model, s.p, 0, static_cast<double>(block_of(s))) * (s.p - 1) / s.p;
  const CostModel m = model_of_late(model);
  return m.step_us(s.most_local) + m.copy_us * static_cast<double>(block_of(s)) * (s.most_local + 1) + between;
}
inline double late_node_scatter_us(const Shape& s, const CostModel& model, double whole, double between) {
  if (goes_straight(s)) return late_down_us(s, model, s.p, 0, static_cast<double>(block_of(s)));
  const double copies = model_of_late(model).copy_us * static_cast<double>(block_of(s));
  return (whole + (s.p - 1) * copies) / s.p + (s.nodes > 1 ? between + copies : 0);
}
inline double node_bytes(const Shape& s) { return static_cast<double>(block_of(s)) * s.most_local; }

inline const char* applies_to_shared_nodes(const Shape& s) {
  return s.area_bytes > 0 ? nullptr : "no two ranks of the team share a node";
}
inline const char* applies_to_several_nodes(const Shape& s) {
  return s.nodes > 1 ? applies_to_shared_nodes(s) : "all ranks share a node: there shm_tree is the same";
}

}  // namespace ibcoll::gather
