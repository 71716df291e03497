// SPDX-License-Identifier: BSD-3-Clause
// The placement of the ranks of a team: on which nodes, and which ranks share one.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

namespace ibcoll {

// Nodes are numbered densely, in the order of their lowest team rank.
class Placement {
 public:
  Placement() = default;
  // `jobs`: team rank -> job rank, without duplicates. `job_nodes`: job rank -> node, by any numbers that are not
  // negative.
  Placement(std::vector<int> jobs, const std::vector<int>& job_nodes);

  int size() const noexcept { return static_cast<int>(jobs_.size()); }
  // True when each rank has the same number in the job.
  bool in_job_order() const noexcept { return job_order_; }
  int job_rank(int rank) const noexcept { return jobs_[static_cast<size_t>(rank)]; }
  const std::vector<int>& job_ranks() const noexcept { return jobs_; }
  int node_count() const noexcept { return static_cast<int>(first_.size()) - 1; }
  int node_of(int rank) const noexcept { return nodes_[static_cast<size_t>(rank)]; }
  // Team ranks of a node, in rising order.
  std::span<const int> ranks_of(int node) const noexcept {
    const auto at = static_cast<size_t>(node);
    return std::span(by_node_).subspan(static_cast<size_t>(first_[at]),
                                       static_cast<size_t>(first_[at + 1] - first_[at]));
  }
  // Positions number the ranks node after node: where those of a node begin, and which rank is at one.
  int first_of(int node) const noexcept { return first_[static_cast<size_t>(node)]; }
  int rank_at(int position) const noexcept { return by_node_[static_cast<size_t>(position)]; }
  // The first of them, which exchanges data with other nodes for all.
  int leader_of(int node) const noexcept { return ranks_of(node).front(); }
  // The leaders of all nodes, in the order of the nodes.
  std::span<const int> leaders() const noexcept { return leaders_; }
  // Ranks on the emptiest and on the fullest node.
  int fewest_local() const noexcept { return fewest_local_; }
  int most_local() const noexcept { return most_local_; }
  // True when the ranks of each node are neighbours: node after node is the order of the ranks.
  bool in_rank_order() const noexcept { return std::is_sorted(nodes_.begin(), nodes_.end()); }

 private:
  std::vector<int> jobs_;
  bool job_order_ = true;
  std::vector<int> nodes_;     // team rank -> node
  std::vector<int> by_node_;   // team ranks, node after node
  std::vector<int> first_{0};  // node -> where its ranks begin in by_node_; and the end
  std::vector<int> leaders_;
  int fewest_local_ = 0;
  int most_local_ = 0;
};

}  // namespace ibcoll
