// SPDX-License-Identifier: BSD-3-Clause
// Allgather(v), circulant: the round-optimal broadcast (framework/circulant.h) from all ranks at once. Every rank's
// block is cut into the same number of parts, n; what a rank sends in a round, one part of each block at most, travels
// as one message.
// Source: Traff, "(Poly)Logarithmic Time Construction of Round-optimal n-Block Broadcast Schedules for Broadcast and
// irregular Allgather in MPI", 2022, section 3.
// Rounds: n - 1 + ceil(lg p), whatever the sizes. Cost: alpha + beta m / n at most per round, for m bytes in all; all
// bytes copied into messages and out, but for messages of one part.
#include <algorithm>
#include <cmath>

#include "runtime/collectives/framework/algorithm.h"
#include "runtime/collectives/framework/circulant.h"

namespace ibcoll::allgather::circulant {
namespace {

uint64_t length_of_parts(uint64_t bytes, uint64_t n) { return (bytes + n - 1) / n; }

enum class Way { kOut, kIn };

// Calls visit(part) for each part that goes out or comes in in the round, in the order of its block's rank.
template <typename Visit>
void parts(const Comm& c, const Args& a, const CirculantRound& round, Way way, Visit visit) {
  for (int root = 0; root < c.size(); ++root) {
    const Bytes block = a.recv[root];
    if (block.empty()) continue;
    const int v = c.rank() >= root ? c.rank() - root : c.rank() - root + c.size();
    const int64_t number = way == Way::kOut ? round.sent(v) : round.received(v);
    const uint64_t length = length_of_parts(block.size(), static_cast<uint64_t>(round.blocks));
    if (number < 0) continue;
    if (const Bytes one = part(block, static_cast<uint64_t>(number) * length, length); !one.empty()) visit(one);
  }
}

// The message that goes out or comes in in a round: in its place, if that is one part, else packed.
Bytes message(const Comm& c, const Args& a, const CirculantRound& round, Way way, std::byte* packed) {
  Bytes only;
  uint64_t bytes = 0;
  parts(c, a, round, way, [&](Bytes one) { only = one, bytes += one.size(); });
  return bytes == only.size() ? only : Bytes(packed, bytes);
}

ConstBytes pack(Comm& c, const Args& a, const CirculantRound& round, std::byte* packed) {
  const Bytes out = message(c, a, round, Way::kOut, packed);
  if (out.data() == packed)
    parts(c, a, round, Way::kOut, [&](Bytes one) { c.copy(Bytes(packed, one.size()), one), packed += one.size(); });
  return out;
}

void unpack(Comm& c, const Args& a, const CirculantRound& round, const std::byte* packed) {
  parts(c, a, round, Way::kIn, [&](Bytes one) { c.copy(one, ConstBytes(packed, one.size())), packed += one.size(); });
}

Task run(Comm& c, Args a) {
  c.copy(a.recv[c.rank()], a.own(c.rank()));
  const CirculantTable* const table = circulant_table(c);
  if (!table) co_return;
  const CirculantRounds rounds(*table, static_cast<int64_t>(a.parameter));
  uint64_t most = 0;  // bytes of a round
  for (int rank = 0; rank < c.size(); ++rank) most += length_of_parts(a.recv.size(rank), a.parameter);
  std::byte* const packed = c.scratch(3 * most);  // what goes out, what comes in, and what will in the next round
  if (!packed) co_return;
  Bytes coming, next;
  for (int64_t i = -1; i < rounds.count(); ++i) {
    coming = next, next = Bytes();
    if (i + 1 < rounds.count()) {
      const CirculantRound later = rounds[i + 1];
      next = message(c, a, later, Way::kIn, packed + (1 + (i + 1) % 2) * static_cast<int64_t>(most));
      c.announce(c.peer(-later.skip), next);
    }
    if (i < 0) continue;
    const CirculantRound round = rounds[i];
    c.put(c.peer(round.skip), pack(c, a, round, packed));
    const uint64_t but = table->q() == 1 ? next.size() : 0;
    co_await c.received_from(c.peer(-round.skip), but);
    if (coming.data() == packed + (1 + i % 2) * static_cast<int64_t>(most)) unpack(c, a, round, coming.data());
    co_await c.flushed();
  }
}

// Without bytes; a rank looks at all blocks.
double round_us(const Shape& s, const CostModel& m) { return m.message_us(0) + m.sharing * cost::kScheduleUs * s.p; }

// All bytes, and those that the longest block takes to fill the pipeline.
double cost_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(std::max<uint64_t>(1, s.parameter));
  const double total = static_cast<double>(s.total), longest = static_cast<double>(s.bytes);
  const double rounds = n - 1 + std::max(1, ceil_log2(s.p));
  return rounds * round_us(s, m) + m.beta_us * (total + (ceil_log2(s.p) - 1) * longest / n) +
         m.own_copies_us(2 * total);
}

constexpr Parameter kParts = {Parameter::Unit::kCount, "parts", 1, 65536};

// The minimum of the cost.
uint64_t choose(const Shape& s, const CostModel& m) {
  const double best = std::sqrt((ceil_log2(s.p) - 1) * m.beta_us * static_cast<double>(s.bytes) / round_us(s, m));
  return best > 1 ? static_cast<uint64_t>(std::min(best, static_cast<double>(kParts.most))) : 1;
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr auto kRows =
      two_rows({.collective = IBCOLL_ALLGATHER,
                .name = "circulant",
                .about = "Traff 2022, round-optimal; any p, any sizes; (n - 1 + ceil(lg p)) (alpha + beta m / n)",
                .parameter = kParts,
                .run = run,
                .choose = choose,
                .cost_us = cost_us},
               IBCOLL_ALLGATHERV);
  return kRows;
}

}  // namespace ibcoll::allgather::circulant
