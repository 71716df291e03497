// SPDX-License-Identifier: BSD-3-Clause
// Teams of simulated ranks and their node windows.
#include "tools/ibcoll_sim/job.h"

#include <numeric>

namespace ibcoll {
namespace {

constexpr uint64_t kFirstEpoch = 0x5151;  // of the first team

}  // namespace

int SimJob::make_world() {
  std::vector<int> all(static_cast<size_t>(size()));
  std::iota(all.begin(), all.end(), 0);
  return make_team(all);
}

int SimJob::make_team(const std::vector<int>& jobs) {
  TeamOfAll team;
  std::vector<int> job_nodes;
  job_nodes.reserve(ranks_.size());
  for (int job = 0; job < size(); ++job) job_nodes.push_back(network_.node(job));
  team.placement = std::make_shared<const Placement>(jobs, job_nodes);
  const Placement& placement = *team.placement;
  std::vector<uint64_t> offsets(static_cast<size_t>(placement.node_count()), 0);
  const uint64_t epoch = kFirstEpoch + teams_.size();
  for (int rank = 0; rank < static_cast<int>(jobs.size()); ++rank) {
    team.members.push_back(std::make_unique<Team>(engine(jobs[static_cast<size_t>(rank)]), epoch, team.placement, rank,
                                                  make_window(placement, rank, offsets)));
  }
  teams_.push_back(std::move(team));
  return static_cast<int>(teams_.size()) - 1;
}

// The first rank of a node allocates, the others find the offset.
std::unique_ptr<NodeWindow> SimJob::make_window(const Placement& placement, int rank, std::vector<uint64_t>& offsets) {
  if (placement.most_local() == 1 || params_.window_area_bytes == 0) return nullptr;
  const int node = placement.node_of(rank);
  std::vector<int> jobs;
  int local = 0;
  for (const int i : placement.ranks_of(node)) {
    if (i == rank) local = static_cast<int>(jobs.size());
    jobs.push_back(placement.job_rank(i));
  }
  NodeMemory& memory = nodes_.memory(placement.job_rank(rank));
  uint64_t& offset = offsets[static_cast<size_t>(node)];
  if (offset == 0) {
    Result<uint64_t> made =
        memory.allocate(WindowMemory::footprint(static_cast<int>(jobs.size()), params_.window_area_bytes));
    if (!made.ok()) return nullptr;
    offset = *made;
    if (!WindowMemory::prepare(memory, offset, teams_.size(), static_cast<int>(jobs.size()), params_.window_area_bytes)
             .ok())
      return nullptr;
  }
  std::byte* const base =
      *memory.at(offset, WindowMemory::footprint(static_cast<int>(jobs.size()), params_.window_area_bytes));
  return std::make_unique<NodeWindow>(&memory, base, params_.window_area_bytes, std::move(jobs), local, params_.blocks,
                                      params_.crowded, offset);
}

}  // namespace ibcoll
