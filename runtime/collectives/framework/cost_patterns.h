// SPDX-License-Identifier: BSD-3-Clause
// Predicted times of communication patterns that several algorithms have in common.
#pragma once

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "runtime/collectives/framework/algorithm.h"

namespace ibcoll {

// The model where `leaders` ranks of each node exchange messages and the others wait for them. Where ranks move the
// bytes themselves, the bytes of a core count once for each of its ranks that moves some, and more while others look
// for theirs; but never more than if all moved as many (docs/design/0005-selection.md).
inline CostModel model_of_busy(CostModel m, double busy) {  // ranks of a core
  if (m.by_ranks) m.beta_us *= std::min(1.0, cost::kWaitingRanksLook * busy / m.sharing);
  m.sharing = busy;
  return m;
}
inline CostModel model_of_leaders(const Shape& s, const CostModel& m, int leaders = 1) {
  return model_of_busy(m, std::max(1.0, m.sharing * leaders / s.most_local));
}
// The model where one late rank has work left and the others wait for it.
inline CostModel model_of_late(const CostModel& m) { return model_of_busy(m, 1); }

// Every rank sends a block to each other one. The rank with the longest block sends most.
inline double direct_us(const Shape& s, const CostModel& m) {
  return m.message_us(0) + (s.p - 1) * m.stream_us(static_cast<double>(s.bytes));
}
// The late rank finds the blocks of the others, which were sent ahead, and sends its own to all of them. Copies out of
// landing memory are in beta, as in cost_us.
inline double late_direct_us(const Shape& s, const CostModel& model) {
  const CostModel m = model_of_late(model);
  const double block = static_cast<double>(s.bytes), others = s.p - 1;
  return std::max(m.message_us(block) + std::max(0.0, others - 1) * m.stream_us(block), m.own_copies_us(block));
}
// For algorithms in which the late rank does its part of the whole, and the others the rest beside it.
template <double (*kCost)(const Shape&, const CostModel&)>
double cost_of_late_us(const Shape& s, const CostModel& m) {
  return kCost(s, model_of_late(m));
}

// Bytes of `count` of the p blocks: the longest one, and others that share what is left alike.
inline double longest_group(const Shape& s, double count) {
  const auto longest = static_cast<double>(s.bytes), all = static_cast<double>(s.total);
  return s.p > 1 ? longest + (count - 1) * std::max(0.0, all - longest) / (s.p - 1) : longest;
}

// Messages of a tree or a chain of p ranks, or of rounds.
struct TreeShape {
  int p;
  double depth;     // messages one after the other from the root to the last rank
  double fanout;    // the most that one rank sends
  double messages;  // in all
};

// The work of the busiest rank, or core, for messages of `bytes` bytes, each in `pieces` pieces.
inline double rank_work_us(const TreeShape& t, const CostModel& m, double bytes, double pieces = 1) {
  return t.fanout * (pieces * 2 * m.cpu_us + m.lone_beta_us() * bytes);
}
inline double core_work_us(const TreeShape& t, const CostModel& m, double bytes, double pieces = 1) {
  return m.sharing * t.messages * (pieces * 2 * m.cpu_us + (m.by_ranks ? m.lone_beta_us() * bytes : 0)) / t.p;
}

// A message of `bytes` bytes down (or up) a tree in pieces of `piece` bytes. Most ranks wait most of the time, so ranks
// of one core seldom move bytes at the same time; but a core cannot do more than all that its ranks have to do. Calls
// in a row overlap, as no rank waits for those below it: so a part of the answer is when the last rank has the message,
// and the rest how long the busiest rank, or core, works.
inline double tree_us(const TreeShape& t, const CostModel& m, double bytes, double piece) {
  const double pieces = bytes > piece ? std::ceil(bytes / piece) : 1;
  const double one = 2 * m.cpu_us + m.lone_beta_us() * std::min(bytes, piece);
  const double path = t.depth * one + (pieces - 1) * t.fanout * one;
  const double work = core_work_us(t, m, bytes, pieces);
  return cost::kPathOfCall * (t.depth * (m.alpha_us + m.yield_us) + std::max(path, work)) +
         (1 - cost::kPathOfCall) * std::max(rank_work_us(t, m, bytes, pieces), work);
}

// ---------------------------------------------------------------- what is left when one late rank comes
//
// The mean over which rank it is.

// A rank asks for a message that is too long to have been sent before it came.
inline double asked_for_us(const CostModel& m, double bytes) { return bytes > m.eager_bytes ? m.message_us(bytes) : 0; }

// Down a tree in pieces, the late rank's own message and those to the ranks below it. `height`: levels below a rank, in
// the mean; each sends to so many children.
inline double late_tree_us(double height, double children, const CostModel& model, double bytes, double piece) {
  const CostModel m = model_of_late(model);
  const double pieces = bytes > piece ? std::ceil(bytes / piece) : 1, one = std::min(bytes, piece);
  const double level = m.message_us(one) + (children - 1) * m.stream_us(one);
  return height * level + (pieces > 1 ? pieces * m.stream_us(one) : asked_for_us(m, bytes));
}

// Applies to k-nomial trees, and to circulant graphs, which are as deep.
inline double knomial_height(double p, double radix) { return (p - 1) / p / (radix - 1); }
// Levels above a rank of a binomial tree, in the mean: bits of its number.
inline double binomial_depth(int p) {
  int64_t bits = 0;
  for (int64_t bit = 1; bit < p; bit *= 2) bits += p / (2 * bit) * bit + std::max<int64_t>(0, p % (2 * bit) - bit);
  return static_cast<double>(bits) / p;
}

// The one of these parameters by which the call costs least, the first one of equals.
template <double (*kCost)(const Shape&, const CostModel&)>
uint64_t cheapest_of(Shape s, const CostModel& m, std::initializer_list<uint64_t> parameters) {
  uint64_t best = 0;
  double lowest = 0;
  for (const uint64_t parameter : parameters) {
    s.parameter = parameter;
    const double cost = kCost(s, m);
    if (best == 0 || cost < lowest) best = parameter, lowest = cost;
  }
  return best;
}

// The piece, a power of two from `least` to `most`, or all in one, by which `bytes` bytes cost least.
template <double (*kCost)(const Shape&, const CostModel&)>
uint64_t best_piece(const Shape& s, const CostModel& m, uint64_t least, uint64_t most, uint64_t bytes) {
  Shape tried = s;
  const auto cost_of = [&](uint64_t piece) {
    tried.parameter = piece;
    return kCost(tried, m);
  };
  uint64_t best = most;
  double lowest = cost_of(most);
  for (uint64_t piece = least; piece < std::min(most, bytes); piece *= 2) {
    const double cost = cost_of(piece);
    if (cost < lowest) lowest = cost, best = piece;
  }
  return best;
}

}  // namespace ibcoll
