// SPDX-License-Identifier: BSD-3-Clause
// Allgather(v), pipelined ring: every rank's data is cut into blocks of at most B bytes, and in each round a rank sends
// a block that it has to its right neighbour and receives one from its left. Ranks without data have no blocks: nothing
// is sent for them. ring_order.h places the ranks.
// Source: Traff, Ripke, Siebert, Balaji, Thakur, Gropp, "A Pipelined Algorithm for Large, Irregular All-Gather
// Problems".
// Rounds, with b_i = max(1, ceil(m_i / B)) and b their sum: at most max (b - b_i). With z ranks without data,
// equidistant, 0 < z < p, and more than z / (p - z) blocks at each of the others: sum ceil(m_i / B) - 1 + ceil(z / (p -
// z)). (The paper has the floor there, which is the same when p - z divides z; else a rank without data needs that one
// round more in any order.)
// Cost: alpha + beta B per round.
#include <algorithm>
#include <cmath>

#include "runtime/collectives/allgather/ring_order.h"
#include "runtime/collectives/framework/algorithm.h"

namespace ibcoll::allgather::ring_pipelined {
namespace {

Task run(Comm& c, Args a) {
  const int p = c.size();
  auto* const ranks = c.scratch_array<int>(static_cast<uint64_t>(p));
  if (!ranks) co_return;
  const std::span<int> order(ranks, static_cast<size_t>(p));
  ring_order(c.placement(), a.recv, order);
  const int here = static_cast<int>(std::find(ranks, ranks + p, c.rank()) - ranks);
  const int right = order[static_cast<size_t>((here + 1) % p)];
  const int left = order[static_cast<size_t>((here - 1 + p) % p)];
  uint64_t coming = 0;
  for (int i = 1; i < p; ++i) {  // in the order in which they come
    const Bytes block = a.recv[order[static_cast<size_t>((here - i + p) % p)]];
    c.announce(left, block);
    coming += block.size();
  }
  const ConstBytes own = a.own(c.rank());
  if (p > 1)
    for (uint64_t at = 0; at < own.size(); at += a.parameter)
      c.put_piece(right, part(own, at, a.parameter), own.size());
  c.copy_when_idle(a.recv[c.rank()], own);
  for (int i = 1; i < p; ++i) {
    const Bytes block = a.recv[order[static_cast<size_t>((here - i + p) % p)]];
    for (uint64_t at = 0; at < block.size(); at += a.parameter) {
      const ConstBytes piece = part(block, at, a.parameter);
      coming -= piece.size();
      co_await c.received_from(left, coming);
      if (i < p - 1) c.put_piece(right, piece, block.size());
    }
  }
  co_await c.flushed();
}

bool regular(const Shape& s) { return s.total == s.bytes * static_cast<uint64_t>(s.p); }

// Rounds beside the sum of m_i / B: half of the ranks with data have a last block that is not full.
double further_rounds(const Shape& s) {
  const double p = s.p, z = s.empty_blocks;
  if (z >= p - 1) return p - 2;
  return (p + z) / 2 - 1 + std::floor(z / (p - z));
}

double cost_us(const Shape& s, const CostModel& m) {
  const double block = static_cast<double>(std::max<uint64_t>(1, std::min(s.parameter, s.bytes)));
  const double longest = static_cast<double>(s.bytes);
  if (regular(s) || s.parameter >= s.bytes)
    return std::max(1, s.p - 1) * std::ceil(longest / block) * m.message_us(block);
  return (static_cast<double>(s.total) / block + further_rounds(s)) * m.message_us(block);
}

constexpr Parameter kBlock = {Parameter::Unit::kBytes, "block", 64, uint64_t{1} << 40};

// The paper's section 2.4, unless that is worse than the plain ring.
uint64_t choose(const Shape& s, const CostModel& m) {
  const uint64_t whole = std::clamp(s.bytes, kBlock.least, kBlock.most);
  if (regular(s) || further_rounds(s) <= 0) return whole;
  const double alpha_beta = m.message_us(0) / m.beta_us;
  const double best = std::sqrt(static_cast<double>(s.total) * alpha_beta / further_rounds(s));
  Shape cut = s, uncut = s;
  cut.parameter =
      static_cast<uint64_t>(std::clamp(best, static_cast<double>(kBlock.least), static_cast<double>(whole)));
  uncut.parameter = whole;
  return cost_us(cut, m) < cost_us(uncut, m) ? cut.parameter : whole;
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr auto kRows =
      two_rows({.collective = IBCOLL_ALLGATHER,
                .name = "ring_pipelined",
                .about = "Traff et al. 2008, pipelined ring; (m/B + (p+z)/2 - 1 + z/(p-z)) (alpha + beta B)",
                .parameter = kBlock,
                .run = run,
                .choose = choose,
                .cost_us = cost_us},
               IBCOLL_ALLGATHERV);
  return kRows;
}

}  // namespace ibcoll::allgather::ring_pipelined
