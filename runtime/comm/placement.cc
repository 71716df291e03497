// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/comm/placement.h"

#include <algorithm>
#include <numeric>

namespace ibcoll {

Placement::Placement(std::vector<int> jobs, const std::vector<int>& job_nodes) : jobs_(std::move(jobs)) {
  if (jobs_.empty()) return;
  for (int i = 0; i < size(); ++i) job_order_ = job_order_ && job_rank(i) == i;
  std::vector<int> number(1 + static_cast<size_t>(*std::max_element(job_nodes.begin(), job_nodes.end())), -1);
  std::vector<int> counts;
  for (const int job : jobs_) {
    int& node = number[static_cast<size_t>(job_nodes[static_cast<size_t>(job)])];
    if (node < 0) {
      node = static_cast<int>(counts.size());
      counts.push_back(0);
    }
    ++counts[static_cast<size_t>(node)];
    nodes_.push_back(node);
  }
  first_.resize(counts.size() + 1);
  std::inclusive_scan(counts.begin(), counts.end(), first_.begin() + 1);
  by_node_.resize(jobs_.size());
  std::vector<int> next = first_;
  for (int rank = 0; rank < size(); ++rank)
    by_node_[static_cast<size_t>(next[static_cast<size_t>(node_of(rank))]++)] = rank;
  for (int node = 0; node < node_count(); ++node) leaders_.push_back(leader_of(node));
  const auto [fewest, most] = std::minmax_element(counts.begin(), counts.end());
  fewest_local_ = *fewest;
  most_local_ = *most;
}

}  // namespace ibcoll
