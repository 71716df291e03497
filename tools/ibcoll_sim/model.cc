// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_sim/model.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ibcoll::simulator {
namespace {

constexpr uint32_t kNoLimit = 1 << 30;  // slots and puts in flight: no rank waits for credit

Time nanoseconds(double us) { return static_cast<Time>(std::llround(us * 1000)); }
uint64_t picoseconds_per_byte(double bandwidth) {
  return bandwidth == 0 ? 0 : static_cast<uint64_t>(std::llround(1000 / bandwidth));
}
double us_per_byte(double bandwidth) { return static_cast<double>(picoseconds_per_byte(bandwidth)) * 1e-6; }

}  // namespace

SimJobParams job_params(const Options& options, std::span<std::byte> nothing) {
  SimJobParams params;
  sim::Params& network = params.network;
  network.ranks = options.ranks;
  for (int rank = 0; rank < options.ranks; ++rank) network.node_of.push_back(options.node_of(rank));
  network.between_nodes = {nanoseconds(options.alpha_us), 0, picoseconds_per_byte(options.bandwidth),
                           nanoseconds(options.gap_us)};
  network.within_node = {nanoseconds(options.node_alpha_us), 0, picoseconds_per_byte(options.node_bandwidth),
                         nanoseconds(options.node_gap_us)};
  network.ports = options.ports;
  network.random = network.poison = false;
  network.work_ps_per_byte = picoseconds_per_byte(options.copy_bandwidth);
  network.flag_ns = nanoseconds(options.flag_us);
  network.nothing = nothing;
  network.slot_bytes = std::max<uint64_t>(options.eager_bytes, 8192);
  network.slots_per_pair = network.puts_per_pair = network.unread_puts_per_pair = kNoLimit;
  params.limits.eager_bytes = options.eager_bytes;
  params.limits.eager_ahead = kNoLimit;
  params.limits.timeout_ns = 0;
  params.limits.calls_at_once = 4;
  params.limits.call_bytes = 1024;
  params.window_area_bytes = options.window_bytes;
  params.node_bytes = uint64_t{1} << 45;
  params.deadline_ns = std::numeric_limits<Time>::max();
  params.most_passes = std::numeric_limits<uint64_t>::max();
  const CostModel model = cost_model(options);
  const int locals = (options.ranks + options.nodes - 1) / options.nodes;
  params.blocks = {model.read_from(locals), model.stream_from(locals, options.window_bytes),
                   static_cast<uint64_t>(model.leaves_caches(locals))};
  return params;
}

// A message takes alpha + beta m, and one more of a stream gap + beta m, which is what selection calls twice cpu_us.
CostModel cost_model(const Options& options) {
  CostModel model;
  const bool one_node = options.nodes == 1;
  const double gap_us = one_node ? options.node_gap_us : options.gap_us;
  model.alpha_us = std::max(0.0, (one_node ? options.node_alpha_us : options.alpha_us) - gap_us);
  model.cpu_us = gap_us / 2;
  model.beta_us = us_per_byte(one_node ? options.node_bandwidth : options.bandwidth);
  model.copy_us = model.streamed_copy_us = model.cached_copy_us = model.combine_us = model.read_us_per_byte =
      us_per_byte(options.copy_bandwidth);
  model.memory_us = model.read_us = 0;
  model.eager_bytes = static_cast<double>(options.eager_bytes);
  model.moves_meanwhile = true;
  model.flag_us = options.flag_us;
  return model;
}

namespace {

// The widest type that divides the size: as few elements as can be.
ibcoll_type_t element_type(uint64_t bytes) {
  return bytes % 8 == 0 ? IBCOLL_DOUBLE : bytes % 4 == 0 ? IBCOLL_FLOAT : IBCOLL_UINT8;
}

}  // namespace

oracle::CallParams call_params(const Options& options, uint64_t bytes) {
  const Collective& row = *options.collective;
  oracle::CallParams params;
  params.collective = row.id;
  params.p = options.ranks;
  params.scheme = options.scheme;
  if (row.rooted) params.root = options.root;
  if (row.reduces()) {
    params.op = IBCOLL_SUM;
    params.type = element_type(bytes);
  }
  const uint64_t unit = row.reduces() ? params.element_bytes() : 1;
  if (row.reduces() && !row.irregular()) params.count = bytes / unit;
  if (!row.reduces() && row.moves_data() && !row.irregular()) params.bytes = bytes;
  if (!row.irregular()) return params;
  const oracle::Distribution distribution = options.distribution;
  const int ranks = options.ranks;
  const uint64_t base = bytes / unit;
  if (row.sizes == SizesKnown::kToPairs)
    params.sizes = [=](int source, int destination) {
      return oracle::distributed_pair(distribution, base, source, destination, ranks);
    };
  else
    params.sizes = [=](int rank, int) { return unit * oracle::distributed(distribution, base, rank, ranks); };
  return params;
}

Shape team_shape(const Options& options) {
  Shape shape;
  shape.p = options.ranks;
  shape.nodes = options.nodes;
  shape.fewest_local = options.ranks / options.nodes;
  shape.most_local = (options.ranks + options.nodes - 1) / options.nodes;
  shape.area_bytes = shape.most_local > 1 ? options.window_bytes : 0;
  shape.single_copy = shape.p > 1 && shape.nodes == 1;
  return shape;
}

}  // namespace ibcoll::simulator
