// SPDX-License-Identifier: BSD-3-Clause
// Reduce-scatter, linear: every rank sends every other one its block of the operand; each combines what it gets in rank order.
// Messages: p - 1 per rank. Cost: alpha + (p - 1) m (beta + gamma) for blocks of m bytes; p blocks of memory.
#include "runtime/collectives/framework/algorithm.h"

namespace ibcoll::reduce_scatter::linear {
namespace {

Task run(Comm& c, Args a) {
  const uint64_t bytes = a.bytes;
  std::byte* const theirs = c.scratch(bytes * static_cast<uint64_t>(c.size()));
  if (!theirs) co_return;
  const auto block = [&](int rank) { return Bytes(theirs + bytes * static_cast<uint64_t>(rank), bytes); };
  for (int i = 1; i < c.size(); ++i) c.announce(c.peer(i), block(c.peer(i)));
  for (int i = 1; i < c.size(); ++i) c.put(c.peer(i), a.send[c.peer(i)]);
  if (c.size() == 1)
    a.reduction.single(theirs, a.send[0].data(), bytes / a.reduction.element_bytes());
  else
    c.copy(block(c.rank()), a.send[c.rank()]);
  co_await c.received();
  co_await c.flushed();  // in place the result replaces what was sent
  for (int i = c.size() - 2; i >= 0 && bytes > 0; --i)
    a.reduction(block(i).data(), block(c.size() - 1).data(), bytes / a.reduction.element_bytes());
  c.copy(a.buffer(), block(c.size() - 1));
}

double cost_us(const Shape& s, const CostModel& m) {
  const double block = static_cast<double>(s.bytes);
  return m.message_us(0) + (s.p - 1) * m.stream_us(block) + m.own_copies_us(block * s.p);
}

constexpr const char* kAbout = "all to all, combined in rank order; alpha + (p-1) m (beta + gamma)";

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {
      {.collective = IBCOLL_REDUCE_SCATTER, .name = "linear", .about = kAbout, .run = run, .cost_us = cost_us},
      {.collective = IBCOLL_REDUCE_SCATTER_BLOCK, .name = "linear", .about = kAbout, .run = run, .cost_us = cost_us}};
  return kRows;
}

}  // namespace ibcoll::reduce_scatter::linear
