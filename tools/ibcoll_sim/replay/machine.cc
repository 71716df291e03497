// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_sim/replay/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/transport/cost_constants.h"

namespace ibcoll::simulator {
namespace {

constexpr double kMostBandwidth = 1000;  // GB/s, as the command line takes

// GB/s
double bandwidth_of(double us_per_byte, double otherwise) {
  return us_per_byte > 0 ? std::min(kMostBandwidth, 1e-3 / us_per_byte) : otherwise;
}

void lay_out(Options& machine, const std::vector<int>& node_of) {
  machine.placement = node_of;
  machine.nodes = 1 + *std::max_element(node_of.begin(), node_of.end());
}

void set_links(const RecordedMachine& recorded, Options& machine) {
  const double slice_us = cost::kSliceUs * (recorded.ranks_per_core - 1);
  const double gap_us = 2 * recorded.cpu_us * recorded.ranks_per_core;
  const double copy_us = recorded.copy_us_per_byte * recorded.ranks_per_core;
  machine.copy_bandwidth = bandwidth_of(copy_us, machine.copy_bandwidth);
  machine.flag_us = (recorded.flag_us > 0 ? recorded.flag_us : machine.flag_us) + slice_us;
  machine.node_alpha_us += slice_us;
  machine.node_bandwidth = bandwidth_of(2 * copy_us, machine.node_bandwidth);
  if (recorded.alpha_us == 0) return;
  const bool one_node = recorded.nodes == 1;
  (one_node ? machine.node_alpha_us : machine.alpha_us) = recorded.alpha_us + gap_us + slice_us;
  (one_node ? machine.node_gap_us : machine.gap_us) = gap_us;
  double& bandwidth = one_node ? machine.node_bandwidth : machine.bandwidth;
  bandwidth = bandwidth_of(recorded.us_per_byte, bandwidth);
}

}  // namespace

Options recorded_machine(const RecordedMachine& recorded, int ranks, const Options& defaults) {
  Options machine = defaults;
  machine.ranks = ranks;
  lay_out(machine, recorded.node_of);
  set_links(recorded, machine);
  return machine;
}

Result<Options> wanted_machine(const Options& recorded, const Options& options) {
  const ReplayOptions& replay = options.replay;
  Options machine = recorded;
  const auto given = [&](const char* option) { return replay.given.contains(option); };
  static constexpr std::pair<const char*, double Options::*> kValues[] = {
      {"--alpha", &Options::alpha_us},
      {"--bandwidth", &Options::bandwidth},
      {"--gap", &Options::gap_us},
      {"--node-alpha", &Options::node_alpha_us},
      {"--node-bandwidth", &Options::node_bandwidth},
      {"--node-gap", &Options::node_gap_us},
      {"--copy-bandwidth", &Options::copy_bandwidth},
      {"--flag", &Options::flag_us},
  };
  for (const auto& [option, value] : kValues)
    if (given(option)) machine.*value = options.*value;
  if (given("--alpha")) machine.gap_us = options.gap_us;  // which is alpha where it is not given
  if (given("--node-alpha")) machine.node_gap_us = options.node_gap_us;
  machine.ports = options.ports;
  machine.eager_bytes = options.eager_bytes, machine.window_bytes = options.window_bytes;
  const int each = replay.ranks_per_node;
  const bool both = replay.nodes > 0 && each > 0;
  const int64_t room = both ? int64_t{replay.nodes} * each : INT64_MAX;
  const int64_t ranks = options.ranks > 0 ? options.ranks : both ? room : recorded.ranks;
  if (ranks > kMostRanks)
    return error(IBCOLL_ERR_INVALID_ARGUMENT,
                 "{} nodes of {} ranks are {} ranks, and at most {} are simulated; change --nodes or --ranks-per-node",
                 replay.nodes, each, ranks, kMostRanks);
  machine.ranks = static_cast<int>(ranks);
  if (replay.nodes == 0 && each == 0 && machine.ranks == recorded.ranks) return machine;
  machine.nodes = replay.nodes > 0 ? replay.nodes
                  : each > 0       ? (machine.ranks + each - 1) / each
                                   : static_cast<int>(ranks * recorded.nodes / recorded.ranks);  // as full as they were
  if (machine.nodes > machine.ranks || ranks > room)
    return error(IBCOLL_ERR_INVALID_ARGUMENT,
                 "{} ranks do not fit on {} nodes{}; change --ranks, --nodes or --ranks-per-node", machine.ranks,
                 machine.nodes, both ? fmt::format(" of {}", each) : "");
  machine.placement.clear();
  std::vector<int> placement;
  for (int rank = 0; rank < machine.ranks; ++rank) placement.push_back(each > 0 ? rank / each : machine.node_of(rank));
  machine.placement = std::move(placement);
  return machine;
}

Shape team_shape(const Options& machine, const Placement& placement) {
  Shape shape;
  shape.p = placement.size();
  shape.nodes = placement.node_count();
  shape.fewest_local = placement.fewest_local();
  shape.most_local = placement.most_local();
  shape.nodes_in_rank_order = placement.in_rank_order();
  shape.area_bytes = shape.most_local > 1 ? machine.window_bytes : 0;
  shape.single_copy = shape.p > 1 && shape.nodes == 1;
  return shape;
}

CostModel team_model(const Options& machine, const Placement& placement) {
  Options own = machine;
  own.nodes = placement.node_count();
  return cost_model(own);
}

}  // namespace ibcoll::simulator
