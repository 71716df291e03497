// SPDX-License-Identifier: BSD-3-Clause
// Predicted times of communication patterns that several algorithms have in common.
#pragma once

#include <algorithm>
#include <cmath>

#include "runtime/collectives/framework/algorithm.h"

namespace ibcoll {

// The model where one rank of each node exchanges messages and the others wait for it. Where ranks move the bytes
// themselves, fewer take turns at it: the leaders of a core. But those that wait look whether something has come, which
// costs half as much again (docs/design/0005-selection.md).
inline CostModel model_of_leaders(const Shape& s, const CostModel& m) {
  CostModel leaders = m;
  leaders.sharing = std::max(1.0, m.sharing / s.most_local);
  if (m.by_ranks) leaders.beta_us *= std::min(1.0, 1.5 * leaders.sharing / m.sharing);
  return leaders;
}

// Bytes of `count` of the p blocks: the longest one, and others that share what is left alike.
inline double longest_group(const Shape& s, double count) {
  const auto longest = static_cast<double>(s.bytes), all = static_cast<double>(s.total);
  return s.p > 1 ? longest + (count - 1) * std::max(0.0, all - longest) / (s.p - 1) : longest;
}

// Messages of a tree or a chain of p ranks.
struct TreeShape {
  int p;
  double depth;     // messages one after the other from the root to the last rank
  double fanout;    // the most that one rank sends
  double messages;  // in all
};

// A message of `bytes` bytes down (or up) a tree in pieces of `piece` bytes. Most ranks wait most of the time, so a
// message does not take turns with those of all other ranks of its core; but a core cannot do more than all that its
// ranks have to do. Calls in a row overlap, as no rank waits for those below it: so half of the answer is when the last
// rank has the message, and half how long the busiest rank, or core, is at it.
inline double tree_us(const TreeShape& t, const CostModel& m, double bytes, double piece) {
  const double pieces = bytes > piece ? std::ceil(bytes / piece) : 1;
  const double beta = m.by_ranks ? m.beta_us / m.sharing : m.beta_us;
  const double one = 2 * m.cpu_us + beta * std::min(bytes, piece);
  const double path = t.depth * one + (pieces - 1) * t.fanout * one;
  const double busiest = t.fanout * (pieces * 2 * m.cpu_us + beta * bytes);
  const double work = m.sharing * t.messages * (pieces * 2 * m.cpu_us + (m.by_ranks ? beta * bytes : 0)) / t.p;
  return (t.depth * (m.alpha_us + m.turn_us) + std::max(path, work) + std::max(busiest, work)) / 2;
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
