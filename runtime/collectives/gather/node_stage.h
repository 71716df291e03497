// SPDX-License-Identifier: BSD-3-Clause
// Gather(v) and scatter(v) within a node, in steps of the node window: the size of a rank's block stands in its
// line, a short block beside it, a longer one in its area. A node's blocks go through one of its ranks, its speaker:
// the root on the root's node, the leader elsewhere. Blocks of more than longest() bytes stay out of the window: they
// go straight to or from the root.
#pragma once

#include "runtime/collectives/gather/costs.h"
#include "runtime/collectives/gather/tree.h"

namespace ibcoll::gather {

class NodeStage {
 public:
  NodeStage(Comm& c, int root, uint64_t threshold) noexcept
      : comm_(c), window_(c.node()), nodes_(c.placement()), root_(root), here_(nodes_.node_of(c.rank())) {
    longest_ = std::min(threshold, std::max(window_.area_bytes(), kBeside));
  }

  uint64_t longest() const noexcept { return longest_; }
  int root_node() const noexcept { return nodes_.node_of(root_); }
  std::span<const int> locals() const noexcept { return nodes_.ranks_of(here_); }
  int speaker_of(int node) const noexcept { return node == root_node() ? root_ : nodes_.leader_of(node); }
  // The rank of this node that talks to other nodes, and its place in the window.
  int speaker() const noexcept { return speaker_of(here_); }
  int local_speaker() const noexcept {
    int local = 0;
    while (locals()[static_cast<size_t>(local)] != speaker()) ++local;
    return local;
  }
  // The speakers of all nodes, in the order of these. nullptr: the collective has failed. Only for speakers.
  Comm* speakers() noexcept {
    const int count = nodes_.node_count();
    auto* const ranks = reinterpret_cast<int*>(comm_.scratch(sizeof(int) * static_cast<uint64_t>(count)));
    if (!ranks) return nullptr;
    for (int node = 0; node < count; ++node) ranks[node] = speaker_of(node);
    return &comm_.among({ranks, static_cast<size_t>(count)});
  }
  Trees trees(Sizes sizes, uint64_t block, uint64_t threshold) const noexcept {
    return {root_node(), sizes, block, threshold, {&nodes_, longest_}};
  }

  // What next_own_step() is told by a rank that writes a block of so many bytes; without one, a size at most.
  uint64_t step_bytes(uint64_t block = 0) const noexcept {
    return fits(block) && block > kBeside ? std::max(block, kBeyond) : kLine;
  }

  void write_size(uint64_t bytes) noexcept { write_size(window_.rank(), bytes); }
  void write_size(int local, uint64_t bytes) noexcept { *size_at(local) = bytes; }
  uint64_t size(int local) const noexcept { return *size_at(local); }
  // Where a block of so many bytes is, from or for a local rank.
  std::byte* block(int local, uint64_t bytes) const noexcept {
    return bytes <= kBeside ? window_.area(local, kLine) + sizeof(uint64_t) : window_.area(local, kBeyond);
  }
  bool fits(uint64_t bytes) const noexcept { return bytes > 0 && bytes <= longest_; }

  // Of the sizes that the node's ranks have published: what the node sends or receives as a unit.
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
  static constexpr uint64_t kLine = NodeWindow::kInlineBytes;
  static constexpr uint64_t kBeside = kLine - sizeof(uint64_t);  // bytes of a block beside its size
  static constexpr uint64_t kBeyond = kLine + 1;                 // what is not in a line is in an area

  uint64_t* size_at(int local) const noexcept { return reinterpret_cast<uint64_t*>(window_.area(local, kLine)); }

  Comm& comm_;
  NodeWindow& window_;
  const Placement& nodes_;
  int root_;
  int here_;
  uint64_t longest_;
};

// Through the window of a node of `most_local` ranks: all write, one reads, or the other way round.
inline double node_stage_us(const Shape& s, const CostModel& m, uint64_t block) {
  return m.step_us(s.most_local) + m.copies_us(static_cast<double>(block)) +
         m.copy_us_of(0) * static_cast<double>(block) * (s.most_local - 1);
}

// Blocks that are too long for the window all go straight.
inline double shm_tree_us(const Shape& s, const CostModel& m, int steps, bool built) {
  const uint64_t block = block_of(s);
  const double above = (steps - 1) * m.step_us(s.most_local);
  if (block > std::min(s.parameter, s.area_bytes)) return above + m.step_us(s.most_local) + 1.02 * linear_us(s, m);
  const double node = static_cast<double>(block) * s.most_local;
  return above + node_stage_us(s, m, block) + (built ? built_of_us(s.nodes, node, m) : tree_of_us(s.nodes, node, m));
}

inline const char* applies_to_shared_nodes(const Shape& s) {
  return s.area_bytes > 0 ? nullptr : "no two ranks of the team share a node";
}

}  // namespace ibcoll::gather
