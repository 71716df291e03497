// SPDX-License-Identifier: BSD-3-Clause
// One step of the node window for algorithms in which a leader exchanges messages for its node: a row of memory for
// each node of the team, for the data that goes to it or comes from it, and the order in which rows have landed.
#pragma once

#include <algorithm>

#include "runtime/collectives/framework/cost_patterns.h"

namespace ibcoll {

class NodeRows {
 public:
  // Rows of at most `row_bytes` bytes; the same on all ranks of the node.
  NodeRows(Comm& c, uint64_t row_bytes) noexcept : comm_(c), window_(c.node()), row_bytes_((row_bytes + 7) / 8 * 8) {
    const int nodes = c.placement().node_count();
    const uint64_t rows = rows_per_area(nodes, window_.size()) * row_bytes_;
    if (rows <= NodeWindow::kInlineBytes || !head_beside_flag(window_.area_bytes(), nodes)) head_ = head_bytes(nodes);
    bytes_ = head_ + rows;
  }

  // The longest row that every node's window has room for; 0: there is none.
  static uint64_t longest(uint64_t area_bytes, int nodes, int fewest_local) noexcept {
    const uint64_t head = head_beside_flag(area_bytes, nodes) ? 0 : head_bytes(nodes);
    return area_bytes < head ? 0 : (area_bytes - head) / rows_per_area(nodes, fewest_local) / 8 * 8;
  }

  // The argument of Comm::next_step().
  uint64_t step_bytes() const noexcept { return bytes_; }
  // The rows are spread over the areas of all ranks of the node.
  std::byte* row(int node) const noexcept {
    const int locals = window_.size();
    return window_.area(node % locals, bytes_) + head_ + row_bytes_ * static_cast<uint64_t>(node / locals);
  }
  // At the leader: the row of `node` has landed, as the k-th of `count`; the first is the node's own. The leader has
  // published a part with its own data before.
  void publish(int k, int count, int node) const noexcept {
    order()[k] = node;
    if (k + 1 < count)
      comm_.publish_part(/*worth_waking=*/k > 0 && row_bytes_ >= kWorthWaking);
    else
      comm_.publish();
  }
  // Until the leader has published the k-th row.
  Comm::Awaiter published(int k) const noexcept { return comm_.published(0, static_cast<uint64_t>(k) + 2); }
  // The node of the k-th row.
  int node(int k) const noexcept { return order()[k]; }

 private:
  // Bytes of a row. Longer ones wake up ranks that sleep, which copy them while the leader waits for the next one.
  // Shorter ones are copied when all have landed: to wake up a rank costs more.
  static constexpr uint64_t kWorthWaking = 65536;

  int32_t* order() const noexcept { return reinterpret_cast<int32_t*>(window_.area(0, head_ > 0 ? bytes_ : 0)); }
  // Rows that fill an area leave no room for the order in which they have landed, which is beside the leader's flag
  // then. Short rows are beside that flag, too, and the order is in front of them.
  static bool head_beside_flag(uint64_t area_bytes, int nodes) noexcept {
    return head_bytes(nodes) <= NodeWindow::kInlineBytes && area_bytes >= 2 * NodeWindow::kInlineBytes;
  }
  static uint64_t head_bytes(int nodes) noexcept {
    return (sizeof(int32_t) * static_cast<uint64_t>(nodes) + 7) / 8 * 8;
  }
  static uint64_t rows_per_area(int nodes, int locals) noexcept {
    return static_cast<uint64_t>((nodes + locals - 1) / locals);
  }

  Comm& comm_;
  NodeWindow& window_;
  uint64_t row_bytes_;
  uint64_t head_ = 0;  // bytes in front of the rows
  uint64_t bytes_ = 0;
};

// Microseconds of `rounds` exchanges in which each leader sends `bytes` bytes in all to the others, with the steps
// around them.
inline double leaders_exchange_us(const Shape& s, const CostModel& m, double rounds, double bytes) {
  const CostModel leaders = model_of_leaders(s, m);
  const double start_ups = leaders.message_us(0) + (s.nodes - 2) * leaders.stream_us(0);
  return rounds * (2 * m.step_us(s.most_local) + start_ups) + leaders.beta_us * bytes;
}

// How many rounds blocks of `bytes` bytes take, of which `cell`, more than 0, move in each.
inline double rounds_of(uint64_t bytes, uint64_t cell) {
  const uint64_t full = bytes == 0 ? 0 : (bytes - 1) / std::max<uint64_t>(cell, 1);
  return 1.0 + static_cast<double>(full);
}

inline const char* applies_to_nodes_of_ranks(const Shape& s, uint64_t cell_bytes) {
  if (s.nodes == 1) return "all ranks of the team share one node's memory";
  if (s.area_bytes == 0) return "no two ranks of the team share a node";
  return cell_bytes > 0 ? nullptr : "the node window is too small for so many nodes and ranks (IBCOLL_SHM_SLOT_BYTES)";
}

}  // namespace ibcoll
