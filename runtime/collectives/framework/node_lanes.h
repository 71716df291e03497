// SPDX-License-Identifier: BSD-3-Clause
// Node phases in which each rank sends its own messages and no rank waits for its node: all that a rank sends to a node
// goes to one rank there, its host, and lands in the host's area of the node window, where all of that node read it.
// Positions number the ranks node after node. On a node of L ranks, local rank l hosts the senders whose position is l
// mod L, so two ranks of a node host as many senders, or one more.
//
// In a step, each rank has a row for each sender that it hosts, and one for its data for its own node. It publishes its
// own row first and the others as they land; the ranks of the node take them in that order.
#pragma once

#include <algorithm>
#include <cstring>

#include "runtime/collectives/framework/cost_patterns.h"

namespace ibcoll {

class NodeLanes {
 public:
  // Rows of `row_bytes` bytes, and `beside` bytes more for this rank alone; both the same on all ranks of the node.
  NodeLanes(Comm& c, uint64_t row_bytes, uint64_t beside = 0) noexcept
      : comm_(c),
        window_(c.node()),
        nodes_(c.placement()),
        here_(nodes_.node_of(c.rank())),
        rows_(rows_of(nodes_.size(), window_.size())),
        row_bytes_(padded(row_bytes)),
        head_(head_bytes(rows_)),
        bytes_(head_ + static_cast<uint64_t>(rows_) * row_bytes_ + beside),
        awaited_(c.scratch_array<uint32_t>(static_cast<uint64_t>(window_.size()))) {}

  // Rows of the rank that has most, on a node of `locals` of p ranks.
  static int rows_of(int p, int locals) noexcept { return (p + locals - 1) / locals; }
  // Bytes that an area has for rows on the node with the fewest ranks; 0: no room for any.
  static uint64_t room(uint64_t area_bytes, int p, int fewest_local) noexcept {
    if (area_bytes == 0) return 0;
    const int rows = rows_of(p, fewest_local);
    const uint64_t lost = head_bytes(rows) + 8 * static_cast<uint64_t>(rows);  // the order of rows; their padding
    return area_bytes > lost ? area_bytes - lost : 0;
  }

  // False: no memory, the collective has failed.
  bool usable() const noexcept { return awaited_ != nullptr; }
  // The argument of Comm::next_step().
  uint64_t step_bytes() const noexcept { return bytes_; }
  // The rank that takes what this rank sends to a node.
  int host(int node) const noexcept {
    const std::span<const int> there = nodes_.ranks_of(node);
    return there[static_cast<size_t>(nodes_.first_of(here_) + window_.rank()) % there.size()];
  }
  // Rows of this rank; its own is among them.
  int rows() const noexcept { return hosted(window_.rank()) + 1; }
  // The sender of this rank's row; -1: this rank itself.
  int sender(int row) const noexcept { return sender(window_.rank(), row); }
  std::byte* row(int row) const noexcept { return row_of(window_.rank(), row); }
  // Whether this rank hosts a rank of another node, and in which row.
  bool hosts(int sender) const noexcept {
    return nodes_.node_of(sender) != here_ && position_of(sender) % window_.size() == window_.rank();
  }
  int landing_row(int sender) const noexcept { return position_of(sender) / window_.size(); }
  std::byte* own_row() const noexcept { return row(own_row_of(window_.rank())); }
  std::byte* beside() const noexcept { return window_.area(window_.rank(), bytes_) + bytes_ - beside_bytes(); }

  // A step has begun: which rows this rank is going to take.
  void begin_step() noexcept {
    published_ = 0;
    left_ = hosted(window_.rank());
    for (int local = 0; local < window_.size(); ++local) {
      awaited_[local] = local == window_.rank() ? 0 : 1;
      if (awaited_[local] > 0) left_ += hosted(local) + 1;
    }
  }
  bool done() const noexcept { return left_ == 0; }
  // For Comm::next_part_or_landing().
  const uint32_t* awaited() const noexcept { return awaited_; }
  // The own row is written.
  void publish_own() noexcept { publish(own_row_of(window_.rank())); }

  // A row to take, and its sender.
  struct Row {
    int sender;
    const std::byte* data;
  };
  // The data of `sender` has landed in its row: publishes it.
  Row landed(int sender) noexcept {
    const int row = landing_row(sender);
    publish(row);
    --left_;
    return {sender, row_of(window_.rank(), row)};
  }
  // The next row that the local rank has published.
  Row take(int local) noexcept {
    const int part = static_cast<int>(awaited_[local]++) - 1;
    if (part == hosted(local)) awaited_[local] = 0;
    --left_;
    const int row = order_of(local)[part], from = sender(local, row);
    return {from < 0 ? nodes_.ranks_of(here_)[static_cast<size_t>(local)] : from, row_of(local, row)};
  }

 private:
  // Bytes of a row that wakes up ranks that sleep; shorter ones they take with all others at the end.
  static constexpr uint64_t kWorthWaking = 65536;

  static uint64_t padded(uint64_t bytes) noexcept { return (bytes + 7) / 8 * 8; }
  static uint64_t head_bytes(int rows) noexcept { return padded(sizeof(int32_t) * static_cast<uint64_t>(rows)); }
  uint64_t beside_bytes() const noexcept { return bytes_ - head_ - static_cast<uint64_t>(rows_) * row_bytes_; }

  // Each local rank of a node of L ranks has one of any L consecutive positions. The positions of the node's own ranks
  // are consecutive, so one of the rows of each is its own.
  int hosted(int local) const noexcept { return rows_of(nodes_.size() - local, window_.size()) - 1; }
  int own_row_of(int local) const noexcept { return rows_of(nodes_.first_of(here_) - local, window_.size()); }
  int sender(int local, int row) const noexcept {
    return row == own_row_of(local) ? -1 : nodes_.rank_at(local + row * window_.size());
  }
  int position_of(int rank) const noexcept {
    const int node = nodes_.node_of(rank);
    const std::span<const int> there = nodes_.ranks_of(node);
    return nodes_.first_of(node) + static_cast<int>(std::lower_bound(there.begin(), there.end(), rank) - there.begin());
  }
  int32_t* order_of(int local) const noexcept { return reinterpret_cast<int32_t*>(window_.area(local, bytes_)); }
  std::byte* row_of(int local, int row) const noexcept {
    return window_.area(local, bytes_) + head_ + row_bytes_ * static_cast<uint64_t>(row);
  }
  void publish(int row) noexcept {
    const int last = hosted(window_.rank());
    order_of(window_.rank())[published_] = row;
    if (published_++ == last)
      comm_.publish();
    else
      comm_.publish_part(/*worth_waking=*/row_bytes_ >= kWorthWaking);
  }

  Comm& comm_;
  NodeWindow& window_;
  const Placement& nodes_;
  int here_;
  int rows_;
  uint64_t row_bytes_;
  uint64_t head_;
  uint64_t bytes_;
  uint32_t* awaited_;  // of each local rank, the next of its parts; 0: no more
  int published_ = 0;  // rows of this rank
  int left_ = 0;       // rows to take, of all ranks of the node
};

// Microseconds in which each rank of a node sends a short message to each other node. The link takes one message after
// the other.
inline double lanes_message_us(const Shape& s, const CostModel& m) {
  return m.message_us(0) + std::max<double>(s.most_local, m.sharing) * (s.nodes - 1) * 2 * m.cpu_us;
}

// Microseconds of `rounds` exchanges of `bytes` bytes in all over the link of a node whose ranks each send to each
// other node.
inline double lanes_exchange_us(const Shape& s, const CostModel& m, double rounds, double bytes) {
  const double beta_us = m.by_ranks ? m.beta_us / s.most_local : m.beta_us;  // ranks that share a core are in m.beta_us
  return rounds * (m.step_us(s.most_local) + lanes_message_us(s, m)) + beta_us * bytes;
}

// The cost of lanes for which the model has `us`, beside pap_shm_direct, whose leaders send fewer messages and wait for
// their nodes. Few programs have ranks that all come at once: where lanes take hardly longer even then, as the link
// bounds both, they count as a little cheaper. Elsewhere the leaders do.
inline double lanes_us(const char* (*why_no_leaders)(const Shape&),
                       double (*leaders_us)(const Shape&, const CostModel&), const Shape& s, const CostModel& m,
                       double us) {
  const double own = cost::kLanes * us;
  if (why_no_leaders(s)) return own;
  const double leaders = leaders_us(s, m);
  const bool preferred = own <= cost::kWorthNotWaiting * leaders;
  return preferred ? std::min(own, leaders / cost::kSecondChoice) : std::max(own, leaders * cost::kSecondChoice);
}

}  // namespace ibcoll
