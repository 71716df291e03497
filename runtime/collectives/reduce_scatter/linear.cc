// SPDX-License-Identifier: BSD-3-Clause
// Reduce-scatter, linear: every rank sends every other one its block of the operand; each combines what it gets in rank
// order.
// Messages: p - 1 per rank. Cost: alpha + (p - 1) m (beta + gamma) for blocks of m bytes, of which a
// piece moves at a time.
#include "runtime/collectives/reduce_scatter/reduce_scatter.h"

namespace ibcoll::reduce_scatter::linear {
namespace {

Task run(Comm& c, Args a) {
  const int p = c.size();
  const uint64_t element = a.reduction.element_bytes(), longest = longest_block(a, p), cell = cell_bytes(a, p);
  if (p == 1) {
    a.reduction.single(a.recv.base, a.send[0].data(), a.bytes / element);
    co_return;
  }
  const uint64_t most = std::min(a.bytes, cell);
  std::byte* const theirs = c.scratch(most * static_cast<uint64_t>(p));
  if (!theirs) co_return;
  for (uint64_t at = 0; at < longest; at += cell) {
    const Bytes result = part(a.buffer(), at, cell);
    const auto block = [&](int rank) { return Bytes(theirs + most * static_cast<uint64_t>(rank), result.size()); };
    for (int i = 1; i < p; ++i) c.announce(c.peer(i), block(c.peer(i)));
    for (int i = 1; i < p; ++i) c.put(c.peer(i), part(a.send[c.peer(i)], at, cell));
    c.copy(block(c.rank()), part(a.send[c.rank()], at, cell));
    co_await c.received();
    co_await c.flushed();  // in place the result replaces what was sent
    for (int i = p - 2; i >= 0 && !result.empty(); --i)
      a.reduction(block(i).data(), block(p - 1).data(), result.size() / element);
    c.copy(result, block(p - 1));
  }
}

double cost_us(const Shape& s, const CostModel& m) {
  const double block = static_cast<double>(s.bytes);
  return m.message_us(0) + (s.p - 1) * m.stream_us(block) + m.copies_us(block * (s.p - 1)) + m.own_copies_us(block) +
         m.combines_us(block * (s.p - 1));
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr auto kRows = two_rows({.collective = IBCOLL_REDUCE_SCATTER,
                                          .name = "linear",
                                          .about = "all to all, combined in rank order; alpha + (p-1) m (beta + gamma)",
                                          .run = run,
                                          .cost_us = cost_us,
                                          .order = Order::kRanks,
                                          .as_exchange = AsExchange::kOfTwo},
                                         IBCOLL_REDUCE_SCATTER_BLOCK);
  return kRows;
}

}  // namespace ibcoll::reduce_scatter::linear
