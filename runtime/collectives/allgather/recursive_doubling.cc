// SPDX-License-Identifier: BSD-3-Clause
// Allgather(v), recursive doubling: in round k, ranks at distance 2^k exchange all that they have, 2^k blocks each.
// Source: Thakur, Gropp, allgather for short messages. Powers of two only. Rounds: lg p.
// Cost: lg p alpha + (p - 1)/p n beta for n bytes in all.
#include <bit>

#include "runtime/collectives/framework/algorithm.h"
#include "runtime/collectives/framework/cost_patterns.h"

namespace ibcoll::allgather::recursive_doubling {
namespace {

// Calls each(region) for the blocks [first, first + count): one region where they are regular, and so lie together.
template <typename Each>
void regions(const Blocks& blocks, int first, int count, Each each) {
  if (!blocks.counts) {
    each(Bytes(blocks.base + blocks.offset(first), blocks.bytes * static_cast<uint64_t>(count)));
    return;
  }
  for (int i = first; i < first + count; ++i) each(blocks[i]);
}

Task run(Comm& c, Args a) {
  c.copy(a.recv[c.rank()], a.own(c.rank()));
  for (int distance = 1; distance < c.size(); distance *= 2) {
    const int partner = c.rank() ^ distance;
    const int mine = c.rank() & ~(distance - 1), theirs = partner & ~(distance - 1);
    regions(a.recv, theirs, distance, [&](Bytes region) { c.announce(partner, region); });
    regions(a.recv, mine, distance, [&](Bytes region) { c.put(partner, region); });
    co_await c.received_from(partner);
  }
  co_await c.flushed();
}

const char* why_not(const Shape& s) {
  return std::has_single_bit(static_cast<unsigned>(s.p)) ? nullptr : "the number of ranks is not a power of two";
}

double cost_us(const Shape& s, const CostModel& m) {
  double cost = 0;
  for (int distance = 1; distance < s.p; distance *= 2) cost += m.message_us(longest_group(s, distance));
  return cost;
}

double cost_v_us(const Shape& s, const CostModel& m) {
  return cost_us(s, m) + (s.p - 1 - ceil_log2(s.p)) * m.stream_us(0);  // one message per block
}

constexpr const char* kAbout = "Thakur, Gropp; p = 2^k; lg p alpha + (p-1)/p n beta";

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {{.collective = IBCOLL_ALLGATHER,
                                         .name = "recursive_doubling",
                                         .about = kAbout,
                                         .run = run,
                                         .why_not = why_not,
                                         .cost_us = cost_us,
                                         .as_exchange = AsExchange::kOfTwo},
                                        {.collective = IBCOLL_ALLGATHERV,
                                         .name = "recursive_doubling",
                                         .about = kAbout,
                                         .run = run,
                                         .why_not = why_not,
                                         .cost_us = cost_v_us,
                                         .as_exchange = AsExchange::kOfTwo}};
  return kRows;
}

}  // namespace ibcoll::allgather::recursive_doubling
