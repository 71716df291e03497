// SPDX-License-Identifier: BSD-3-Clause
// Broadcast, circulant: the buffer in n blocks; in each round a rank sends one block and receives another, as the
// round-optimal schedule says (framework/circulant.h).
// Source: Traff, "(Poly)Logarithmic Time Construction of Round-optimal n-Block Broadcast Schedules", 2022, algorithm 1.
// Rounds: n - 1 + ceil(lg p), for any p. Cost: (n - 1 + ceil(lg p)) (alpha + beta m / n) for m bytes.
#include "runtime/collectives/framework/circulant.h"

#include <algorithm>
#include <cmath>

#include "runtime/collectives/framework/cost_patterns.h"

namespace ibcoll::bcast::circulant {
namespace {

Task run(Comm& c, Args a) {
  const int p = c.size(), v = c.peer(-a.root);  // v: this rank, counted from the root
  if (p == 1 || a.bytes == 0) co_return;
  const CirculantTable* const table = circulant_table(c);
  if (!table) co_return;
  const uint64_t length = (a.bytes - 1) / a.parameter + 1;
  const CirculantRounds rounds(*table, static_cast<int64_t>((a.bytes - 1) / length + 1));
  uint64_t coming[CirculantTable::kMostRounds] = {};  // by k: each has a sender of its own
  for (int64_t i = 0; i < rounds.count(); ++i) {
    const CirculantRound round = rounds[i];
    const int64_t block = round.received(v);
    if (block < 0) continue;
    const Bytes into = part(a.buffer(), static_cast<uint64_t>(block) * length, length);
    c.announce(c.peer(-round.skip), into);
    coming[round.k] += into.size();
  }
  for (int64_t i = 0; i < rounds.count(); ++i) {
    const CirculantRound round = rounds[i];
    if (const int64_t block = round.sent(v); block >= 0)
      c.put(c.peer(round.skip), part(a.buffer(), static_cast<uint64_t>(block) * length, length));
    const int64_t block = round.received(v);
    if (block < 0) continue;
    coming[round.k] -= part(a.buffer(), static_cast<uint64_t>(block) * length, length).size();
    co_await c.received_from(c.peer(-round.skip), coming[round.k]);
  }
  co_await c.flushed();
}

double cost_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(std::max<uint64_t>(1, s.parameter));
  return (n - 1 + std::max(1, ceil_log2(s.p))) * m.message_us(std::ceil(static_cast<double>(s.bytes) / n));
}

// The late rank receives all blocks, unless there is one that was there before.
double late_us(const Shape& s, const CostModel& model) {
  const CostModel m = model_of_late(model);
  const double n = static_cast<double>(std::max<uint64_t>(1, s.parameter)), bytes = static_cast<double>(s.bytes);
  const double block = m.message_us(std::ceil(bytes / n));
  return knomial_height(s.p, 2) * block + (n > 1 ? n * block : asked_for_us(m, bytes));
}

constexpr Parameter kBlocks = {Parameter::Unit::kCount, "blocks", 1, 65536};

// The minimum of the cost.
uint64_t choose(const Shape& s, const CostModel& m) {
  const double best = std::sqrt((ceil_log2(s.p) - 1) * m.beta_us * static_cast<double>(s.bytes) / m.message_us(0));
  return best > 1 ? static_cast<uint64_t>(std::min(best, static_cast<double>(kBlocks.most))) : 1;
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {
      {.collective = IBCOLL_BCAST,
       .name = "circulant",
       .about = "Traff 2022, round-optimal; any p; (n - 1 + ceil(lg p)) (alpha + beta m / n) in n blocks",
       .parameter = kBlocks,
       .run = run,
       .choose = choose,
       .cost_us = cost_us,
       .late_us = late_us}};
  return kRows;
}

}  // namespace ibcoll::bcast::circulant
