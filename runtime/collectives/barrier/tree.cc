// SPDX-License-Identifier: BSD-3-Clause
// Barrier, tree: a rank sends a token to its parent in a k-ary tree when it and all ranks below it have arrived; the
// root's token goes down the same tree. Any p; 2 (p - 1) messages where dissemination takes p ceil(lg p).
// Source: Mellor-Crummey, Scott, "Algorithms for Scalable Synchronization on Shared-Memory Multiprocessors", 1991,
// section 3.4, with one tree for both ways. Rounds: 2 ceil(log_k p). Cost: 2 ceil(log_k p) alpha.
#include "runtime/collectives/framework/cost_patterns.h"

namespace ibcoll::barrier::tree {
namespace {

Task run(Comm& c, Args a) {
  std::byte* const token = c.scratch(2);
  if (!token) co_return;
  token[0] = token[1] = std::byte{0};
  const Bytes in(token, 1);
  const ConstBytes out(token + 1, 1);
  const auto radix = static_cast<int64_t>(a.parameter);
  const int64_t first = c.rank() * radix + 1, end = std::min<int64_t>(first + radix, c.size());
  for (int64_t child = first; child < end; ++child) c.announce(static_cast<int>(child), in);
  co_await c.received();
  if (c.rank() > 0) {
    const int parent = static_cast<int>((c.rank() - 1) / radix);
    c.announce(parent, in);
    c.put(parent, out);
    co_await c.received();
  }
  for (int64_t child = first; child < end; ++child) c.put(static_cast<int>(child), out);
  co_await c.flushed();
}

double levels_of(const Shape& s) {
  double levels = 0;
  for (double reached = 1, level = 1; reached < s.p; ++levels) reached += level *= static_cast<double>(s.parameter);
  return levels;
}

double cost_us(const Shape& s, const CostModel& m) {
  const double levels = levels_of(s);
  // A rank receives the tokens of its children one after the other, and sends theirs so.
  const double children = static_cast<double>(std::min<uint64_t>(s.parameter, static_cast<uint64_t>(s.p)));
  const double path = 2 * levels * children * 2 * m.cpu_us;
  const double work = m.sharing * 2 * (s.p - 1) * 2 * m.cpu_us / s.p;
  return 2 * levels * (m.alpha_us + m.yield_us) + std::max(path, work);
}

// One token goes up, and all go down.
double late_us(const Shape& s, const CostModel& m) {
  return levels_of(s) * (s.p - 1) / s.p * model_of_late(m).message_us(1) + cost_us(s, m) / 2;
}

uint64_t choose(const Shape& s, const CostModel& m) { return cheapest_of<cost_us>(s, m, {2, 4, 8, 16}); }

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {
      {.collective = IBCOLL_BARRIER,
       .name = "tree",
       .about = "Mellor-Crummey, Scott 1991; up and down a k-ary tree, 2 log_k p alpha",
       .parameter = {Parameter::Unit::kCount, "radix", 1, 1024},
       .run = run,
       .choose = choose,
       .cost_us = cost_us,
       .late_us = late_us}};
  return kRows;
}

}  // namespace ibcoll::barrier::tree
