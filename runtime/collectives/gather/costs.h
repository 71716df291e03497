// SPDX-License-Identifier: BSD-3-Clause
// The costs of gather(v) and scatter(v), by tree or straight.
#pragma once

#include <cmath>

#include "runtime/collectives/framework/cost_patterns.h"

namespace ibcoll::gather {

// Bytes of the largest block. Where not all ranks know the sizes, algorithms are compared as if every block had the same.
inline uint64_t block_of(const Shape& s) { return s.sizes_known ? s.bytes : cost::kUnknownBlock; }

inline double linear_us(const Shape& s, const CostModel& m) {
  const double block = static_cast<double>(block_of(s));
  return m.message_us(0) + m.beta_us * block + (s.p - 2) * m.stream_us(block);
}

// The additional moves of blocks, where trees of 2^levels of the units send straight to the root: half a block per
// level and unit, less what the root has itself.
inline double forwarded_blocks(int units, int levels) {
  return std::max(0.0, static_cast<double>(units) * levels / 2 - std::exp2(levels) + 1);
}
// Their share of the work of each unit. Where ranks move the bytes themselves and share cores, this delays others.
inline double forward_us(int units, int levels, double block, const CostModel& m) {
  return m.beta_us * block * forwarded_blocks(units, levels) / units;
}
// `units` units of `block` bytes, in a tree in which each byte waits for the root's link.
inline double tree_of_us(int units, double block, const CostModel& m) {
  const int levels = ceil_log2(units);
  return levels * m.message_us(0) + m.beta_us * block * (units - 1) + forward_us(units, levels, block, m);
}
inline double tree_us(const Shape& s, const CostModel& m) {
  return tree_of_us(s.p, static_cast<double>(block_of(s)), m);
}

// The same where sizes travel first and the tree may be wrong for them: on half of the levels all waits for one long
// block.
inline double oblivious_tree_us(const Shape& s, const CostModel& m) {
  const int levels = ceil_log2(s.p);
  const double all = static_cast<double>(block_of(s)) * (s.p - 1);
  return 2 * levels * m.message_us(0) + m.beta_us * all * std::max(1.0, cost::kLevelsOfLongBlock * levels);
}
// The theorem, without a penalty.
inline double built_of_us(int units, double block, const CostModel& m) {
  return 2 * ceil_log2(units) * m.message_us(0) + tree_of_us(units, block, m);
}
inline double built_tree_us(const Shape& s, const CostModel& m) {
  return built_of_us(s.p, static_cast<double>(block_of(s)), m);
}

inline constexpr Parameter kThreshold{Parameter::Unit::kBytes, "threshold", 1, uint64_t{1} << 50};

// A cube that sends straight to the root costs that a start-up: at most one part in `start_ups` of the time of its
// bytes.
inline uint64_t threshold_of(double start_ups, const CostModel& m) {
  const double bytes = m.beta_us > 0 ? start_ups * m.message_us(0) / m.beta_us : cost::kMostThreshold;
  return static_cast<uint64_t>(std::clamp(bytes, cost::kLeastThreshold, cost::kMostThreshold));
}
inline uint64_t choose_threshold(const Shape&, const CostModel& m) { return threshold_of(cost::kStartUpsOfRanks, m); }
// The threshold of nodes, and of blocks in a node's window: these are copied twice more than those that go straight. On
// a slow link that matters less than a message of their own. Where all share one node, a message is a single copy.
inline uint64_t choose_node_threshold(const Shape& s, const CostModel& m) {
  const double copied_in_a_message = m.message_us(0) / (2 * m.copy_us * m.sharing);
  const uint64_t threshold = std::max(threshold_of(cost::kStartUpsOfNodes, m),
                                      static_cast<uint64_t>(std::min(copied_in_a_message, cost::kMostThreshold)));
  const double gain = m.sharing * (2 * m.copy_us - m.read_us_per_byte);
  if (!s.single_copy || gain * static_cast<double>(threshold) <= m.message_us(0)) return threshold;
  return static_cast<uint64_t>(std::max(m.message_us(0) / gain, cost::kLeastThreshold));
}

// Trees of 2^levels equal blocks; all but the root's own send straight to it. Without levels: linear. With all: one
// tree.
inline double degraded_us(const Shape& s, const CostModel& m, int levels) {
  if (levels == 0) return linear_us(s, m);
  if (levels >= ceil_log2(s.p)) return tree_us(s, m);
  const int straight = (s.p - 1) >> levels;  // ceil(p / 2^levels) - 1
  const auto block = static_cast<double>(block_of(s));
  return (levels + 1) * m.message_us(0) + straight * m.stream_us(0) + m.beta_us * block * (s.p - 1) +
         forward_us(s.p, levels, block, m);
}
inline int levels_within(uint64_t threshold, const Shape& s) {
  int levels = 0;
  while (levels < ceil_log2(s.p) && s.bytes << levels <= threshold) ++levels;
  return levels;
}
inline double degraded_tree_us(const Shape& s, const CostModel& m) {
  return degraded_us(s, m, levels_within(s.parameter, s));
}
inline uint64_t choose_equal_threshold(const Shape& s, const CostModel& m) {
  int best = 0;
  for (int levels = 1; levels <= ceil_log2(s.p); ++levels)
    if (degraded_us(s, m, levels) < degraded_us(s, m, best)) best = levels;
  return std::clamp<uint64_t>((s.bytes << best) - (s.bytes > 0), kThreshold.least, kThreshold.most);
}

// ---------------------------------------------------------------- what is left when one late rank comes

// A late leaf of the linear gather has one message to send. A late root finds what fits into the shares of the others,
// and copies it. Of a short block the copy is part of the message, as in all algorithms.
inline double share_of(const Shape& s, const CostModel& m) { return m.spill_bytes / std::max(1, s.p - 1); }
inline double late_linear_gather_us(const Shape& s, const CostModel& model) {
  const CostModel m = model_of_late(model);
  const double block = static_cast<double>(block_of(s)), others = s.p - 1;
  const double ahead = std::min(block, share_of(s, m));
  const double copied = block > m.eager_bytes ? others * ahead : 0;
  return (others * (m.message_us(block) + m.beta_us * (block - ahead)) + m.own_copies_us(block + copied)) / s.p;
}
// All wait for a late root of the linear scatter; a late leaf copies what was sent ahead, and has to ask for what does
// not fit into the root's share.
inline double late_linear_scatter_us(const Shape& s, const CostModel& model) {
  const CostModel m = model_of_late(model);
  const double block = static_cast<double>(block_of(s)), ahead = std::min(block, share_of(s, m));
  const double asked_for = ahead < block ? asked_for_us(m, block - ahead) : 0;
  const double copied = block > m.eager_bytes ? m.own_copies_us(ahead) : 0;
  return (linear_us(s, model) + (s.p - 1) * (copied + asked_for)) / s.p;
}

// Trees of 2^levels units, whose roots send straight to the root, or all `units` in one: each unit above the late one
// waits for it, for its blocks and those that come with them; a late rank has to ask for long ones.
inline double late_up_us(const Shape& s, const CostModel& model, int units, int levels, double block) {
  const CostModel m = model_of_late(model);
  const bool whole = levels >= ceil_log2(units), asks = block_of(s) > static_cast<uint64_t>(m.eager_bytes);
  const double depth = whole ? binomial_depth(units) : static_cast<double>(levels) / 2 + 1,
               straight = whole ? 0 : std::exp2(levels);
  const double sent = (std::min<double>(units, std::exp2(levels)) - 1) / 2 + straight;
  return depth * m.message_us(0) + m.beta_us * block * (sent + (asks ? depth : 0));
}
// The same downwards: the units below the late one wait for it, and all wait for a late root.
inline double late_down_us(const Shape& s, const CostModel& model, int units, int levels, double block) {
  const CostModel m = model_of_late(model);
  const bool whole = levels >= ceil_log2(units), asks = block_of(s) > static_cast<uint64_t>(m.eager_bytes);
  const double others = (units - 1.0) / units;
  const double root = whole ? tree_of_us(units, block, model) : linear_us(s, model);
  const double height =
      whole ? others - static_cast<double>(levels) / units : others * knomial_height(std::exp2(levels), 2);
  const double below = m.beta_us * block * (whole ? binomial_depth(units) - others : others * levels / 2);
  return root / units + height * m.message_us(0) + below + (asks ? others * m.message_us(block) + below : 0);
}

// A late root has its own block to copy.
inline double late_tree_gather_us(const Shape& s, const CostModel& m) {
  const double block = static_cast<double>(block_of(s));
  return late_up_us(s, m, s.p, ceil_log2(s.p), block) + model_of_late(m).own_copies_us(block) / s.p;
}
inline double late_degraded_gather_us(const Shape& s, const CostModel& m) {
  const int levels = levels_within(s.parameter, s);
  if (levels == 0) return late_linear_gather_us(s, m);
  if (levels >= ceil_log2(s.p)) return late_tree_gather_us(s, m);
  return late_up_us(s, m, s.p, levels, static_cast<double>(block_of(s)));
}
inline double late_tree_scatter_us(const Shape& s, const CostModel& m) {
  return late_down_us(s, m, s.p, ceil_log2(s.p), static_cast<double>(block_of(s)));
}
inline double late_degraded_scatter_us(const Shape& s, const CostModel& m) {
  return late_down_us(s, m, s.p, levels_within(s.parameter, s), static_cast<double>(block_of(s)));
}

// Sizes travel first, of `units` units. They go up with the blocks of a gather, and between the halves of a cube where
// the tree is built for them.
inline double late_built_of_us(const Shape& s, const CostModel& model, int units, double block) {
  return ceil_log2(units) * model_of_late(model).message_us(0) / 2 +
         late_up_us(s, model, units, ceil_log2(units), block);
}
inline double late_built_gather_us(const Shape& s, const CostModel& m) {
  return late_built_of_us(s, m, s.p, static_cast<double>(block_of(s)));
}
// In a scatter they go up, and all that is above the late rank, and below that, waits for them.
inline double late_sized_scatter_of_us(const CostModel& model, int units, double block) {
  const CostModel m = model_of_late(model);
  const double up = ceil_log2(units) * m.message_us(0) / 2, down = 2 * up;
  return up + down + m.beta_us * block * units / 2;
}
inline double late_sized_scatter_us(const Shape& s, const CostModel& m) {
  return late_sized_scatter_of_us(m, s.p, static_cast<double>(block_of(s)));
}

}  // namespace ibcoll::gather
