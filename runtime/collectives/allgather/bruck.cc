// SPDX-License-Identifier: BSD-3-Clause
// Allgather(v), Bruck: blocks gather in a scratch buffer in the order rank, rank + 1, ...; in round k each rank sends
// its first min(2^k, p - 2^k) blocks to rank - 2^k and appends as many from rank + 2^k; at the end they go to their
// places.
// Source: Bruck et al., "Efficient Algorithms for All-to-All Communications in Multiport Message-Passing Systems",
// 1997, as in Thakur, Gropp for short messages. Any p. Rounds: ceil(lg p). Cost: ceil(lg p) alpha + (p - 1)/p n beta, 2
// n copied.
#include <algorithm>

#include "runtime/collectives/framework/algorithm.h"
#include "runtime/collectives/framework/cost_patterns.h"

namespace ibcoll::allgather::bruck {
namespace {

// Bytes of the blocks first, first + 1, ..., first + count - 1 (modulo p).
uint64_t run_bytes(const Comm& c, const Args& a, int first, int count) {
  uint64_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += a.recv.size((first + i) % c.size());
  return bytes;
}

Task run(Comm& c, Args a) {
  const int p = c.size();
  std::byte* const gathered = c.scratch(run_bytes(c, a, 0, p));
  if (!gathered) co_return;
  const ConstBytes own = a.own(c.rank());
  c.copy(Bytes(gathered, own.size()), own);
  uint64_t have = own.size();
  for (int distance = 1; distance < p; distance *= 2) {
    const int count = std::min(distance, p - distance);
    const int from = c.peer(distance), to = c.peer(-distance);
    const uint64_t coming = run_bytes(c, a, from, count);
    c.announce(from, Bytes(gathered + have, coming));
    c.put(to, ConstBytes(gathered, run_bytes(c, a, c.rank(), count)));
    co_await c.received_from(from);
    have += coming;
  }
  uint64_t at = 0;
  for (int i = 0; i < p; ++i) {
    const Bytes block = a.recv[c.peer(i)];
    c.copy(block, ConstBytes(gathered + at, block.size()));
    at += block.size();
  }
  co_await c.flushed();
}

double cost_us(const Shape& s, const CostModel& m) {
  double cost = m.own_copies_us(2 * static_cast<double>(s.total));
  for (int distance = 1; distance < s.p; distance *= 2)
    cost += m.message_us(longest_group(s, std::min(distance, s.p - distance)));
  return cost;
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr auto kRows =
      two_rows({.collective = IBCOLL_ALLGATHER,
                .name = "bruck",
                .about = "Bruck et al. 1997; any p; ceil(lg p) alpha + (p-1)/p n beta, n copied twice",
                .run = run,
                .cost_us = cost_us},
               IBCOLL_ALLGATHERV);
  return kRows;
}

}  // namespace ibcoll::allgather::bruck
