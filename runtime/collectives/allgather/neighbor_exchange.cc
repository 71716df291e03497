// SPDX-License-Identifier: BSD-3-Clause
// Allgather(v), neighbour exchange: even p. Ranks 2q and 2q + 1 exchange their blocks; from then on each rank exchanges
// with its two neighbours alternately, and sends each the pair of blocks that it received last from the other one.
// Source: Chen, Zhang, Zhang, Yuan, "Performance Evaluation of Allgather Algorithms on Terascale Linux Cluster with
// Fast Ethernet", 2005. Rounds: p / 2. Cost: p/2 alpha + (p - 1)/p n beta for n bytes in all.
#include "runtime/collectives/framework/algorithm.h"

namespace ibcoll::allgather::neighbor_exchange {
namespace {

// Which pair of blocks a rank receives in round i: its own pair in round 0, then alternately from one side and the
// other.
int pair_of_round(int rank, int round, int pairs) {
  const int towards = rank % 2 == 0 ? 1 : -1;  // of even ranks, the partner of round 0 is above
  const int steps = round % 2 == 1 ? -towards * (round + 1) / 2 : towards * round / 2;
  return ((rank / 2 + steps) % pairs + pairs) % pairs;
}

// Blocks of allgatherv may lie apart, and so differently at each rank that pairs travel as two messages there.
void announce_pair(Comm& c, const Args& a, int peer, int pair) {
  const Bytes first = a.recv[2 * pair], second = a.recv[2 * pair + 1];
  if (a.collective == IBCOLL_ALLGATHER) return c.announce(peer, Bytes(first.data(), first.size() + second.size()));
  c.announce(peer, first);
  c.announce(peer, second);
}

void put_pair(Comm& c, const Args& a, int peer, int pair) {
  const Bytes first = a.recv[2 * pair], second = a.recv[2 * pair + 1];
  if (a.collective == IBCOLL_ALLGATHER) return c.put(peer, ConstBytes(first.data(), first.size() + second.size()));
  c.put(peer, first);
  c.put(peer, second);
}

Task run(Comm& c, Args a) {
  const int rank = c.rank(), pairs = c.size() / 2;
  const int partner = rank ^ 1, other = rank % 2 == 0 ? c.peer(-1) : c.peer(1);
  c.copy(a.recv[rank], a.own(rank));
  c.announce(partner, a.recv[partner]);
  c.put(partner, a.recv[rank]);
  co_await c.received();
  for (int round = 1; round < pairs; ++round) {
    const int peer = round % 2 == 1 ? other : partner;
    announce_pair(c, a, peer, pair_of_round(rank, round, pairs));
    put_pair(c, a, peer, pair_of_round(rank, round - 1, pairs));
    co_await c.received();
  }
  co_await c.flushed();
}

const char* why_not(const Shape& s) { return s.p % 2 == 0 ? nullptr : "the number of ranks is odd"; }

double cost_us(const Shape& s, const CostModel& m) {
  const auto block = static_cast<double>(s.bytes);
  return m.message_us(block) + (static_cast<double>(s.p) / 2 - 1) * m.message_us(2 * block);
}

constexpr Algorithm row(ibcoll_collective_t collective) {
  return {.collective = collective,
          .name = "neighbor_exchange",
          .about = "Chen et al. 2005; even p; p/2 alpha + (p-1)/p n beta",
          .run = run,
          .why_not = why_not,
          .cost_us = cost_us};
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {row(IBCOLL_ALLGATHER), row(IBCOLL_ALLGATHERV)};
  return kRows;
}

}  // namespace ibcoll::allgather::neighbor_exchange
