// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_sim/replay/bound.h"

#include <algorithm>
#include <utility>

namespace ibcoll::simulator {
namespace {

// Bytes of what `rank` cannot have without `from`; negative: it needs nothing of it.
double needed(const oracle::CallParams& params, int from, int rank) {
  constexpr double kNothing = -1;
  const auto block = [&](int source, int destination) {
    return static_cast<double>(params.block_bytes(source, destination));
  };
  const int root = params.root;
  switch (params.collective) {
    case IBCOLL_BARRIER:
      return 0;
    case IBCOLL_BCAST:
      return from == root ? block(0, 0) : kNothing;
    case IBCOLL_ALLGATHER:
    case IBCOLL_ALLGATHERV:
      return block(from, from);
    case IBCOLL_GATHER:
    case IBCOLL_GATHERV:
      return rank == root ? block(from, from) : kNothing;
    case IBCOLL_SCATTER:
    case IBCOLL_SCATTERV:
      return from == root ? block(rank, rank) : kNothing;
    case IBCOLL_ALLTOALL:
      return block(0, 0);
    case IBCOLL_ALLTOALLV:
      return block(from, rank) > 0 ? block(from, rank) : kNothing;
    case IBCOLL_REDUCE:
      return rank == root ? block(0, 0) : kNothing;
    case IBCOLL_REDUCE_SCATTER:
    case IBCOLL_REDUCE_SCATTER_BLOCK:
      return block(rank, rank);
    case IBCOLL_SCAN:
    case IBCOLL_EXSCAN:
      return from < rank ? block(0, 0) : kNothing;
    default:
      return block(0, 0);  // allreduce
  }
}

// The data of several sources comes to a rank as one block.
bool combines(const oracle::CallParams& params) {
  return params.row().reduces() || params.collective == IBCOLL_BARRIER;
}

}  // namespace

Bound::Bound(const Options& machine, const Placement& placement, oracle::CallParams params)
    : machine_(machine), placement_(placement), params_(std::move(params)) {
  const bool shared = params_.collective == IBCOLL_ALLGATHER || params_.collective == IBCOLL_ALLGATHERV ||
                      params_.collective == IBCOLL_ALLREDUCE || params_.collective == IBCOLL_BCAST;
  for (int rank = 0; rank < params_.p; ++rank) {
    const int node = placement_.node_of(rank);
    double bytes = 0;
    bool any = false;
    for (int from = 0; from < params_.p; ++from) {
      if (placement_.node_of(from) == node) continue;
      const double one = needed(params_, from, rank);
      if (one < 0) continue;
      any = true;
      bytes = combines(params_) ? std::max(bytes, one) : bytes + one;
    }
    // Ranks of a node that need the same may share their ports.
    const bool ports = shared && machine_.ports == sim::Ports::kRank;
    const double width = ports ? static_cast<double>(placement_.ranks_of(node).size()) : 1;
    whole_ns_.push_back(any ? machine_.alpha_us * 1000 + bytes / width / machine_.bandwidth : 0);
  }
}

double Bound::needs_ns(int last, int rank) const {
  const double bytes = rank == last ? -1 : needed(params_, last, rank);
  if (bytes < 0) return 0;
  if (placement_.node_of(rank) == placement_.node_of(last))
    return std::min(machine_.flag_us, machine_.node_alpha_us) * 1000;
  const auto ports = static_cast<double>(placement_.ranks_of(placement_.node_of(rank)).size());
  return machine_.alpha_us * 1000 + bytes / ports / machine_.bandwidth;
}

double Bound::after_last_ns(std::span<const Moments> moments) const {
  const auto earlier = [](const Moments& a, const Moments& b) { return a.arrival < b.arrival; };
  const auto [first, end] = std::minmax_element(moments.begin(), moments.end(), earlier);
  const int last = static_cast<int>(end - moments.begin());
  double sum = 0;
  for (int rank = 0; rank < params_.p; ++rank) {
    const double whole = whole_ns_[static_cast<size_t>(rank)];
    // A rank waits only from then on.
    const auto from = static_cast<double>(std::max(end->arrival, moments[static_cast<size_t>(rank)].waits));
    const double earliest = std::max(static_cast<double>(end->arrival) + needs_ns(last, rank),
                                     whole > 0 ? static_cast<double>(first->arrival) + whole : 0);
    sum += std::max(0.0, earliest - from);
  }
  return sum;
}

}  // namespace ibcoll::simulator
