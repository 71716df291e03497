// SPDX-License-Identifier: BSD-3-Clause
// Allgather(v), Shm_Direct and PAP_Shm_Direct: (1) the ranks of a node write their blocks side by side into shared
// memory; (2) the leaders of the nodes exchange these rows directly, and what arrives lands in memory that the node
// shares; (3) all ranks copy the rows out. Shm_Direct sends to node + 1, node + 2, ... and waits until one is ready
// before it sends to the next; phase 3 begins when all rows have landed. PAP_Shm_Direct serves nodes as they arrive,
// and the ranks copy each row as it lands (where they share one core, short rows when all have landed).
// Source: Qian, Afsahi, "Process Arrival Pattern Aware Alltoall and Allgather on InfiniBand Clusters".
// Cost, with N nodes of L ranks: (N - 1) messages per node, p - L blocks over the network per node instead of per rank.
#include "runtime/collectives/allgather/pap_shm_direct.h"

#include <algorithm>

#include "runtime/collectives/framework/node_rows.h"

namespace ibcoll::allgather::pap_shm_direct {
namespace {

// Blocks longer than this move in several rounds.
uint64_t longest_cell(uint64_t area_bytes, int nodes, int fewest_local, int most_local) {
  return NodeRows::longest(area_bytes, nodes, fewest_local) / static_cast<uint64_t>(most_local);
}

// Bytes that these ranks, neighbours in a row, have in the round at `at`.
uint64_t row_bytes(const Args& a, std::span<const int> ranks, uint64_t at, uint64_t cell) {
  uint64_t bytes = 0;
  for (const int rank : ranks) bytes += part(a.recv[rank], at, cell).size();
  return bytes;
}

void copy_out(Comm& c, const Args& a, std::span<const int> ranks, const std::byte* row, uint64_t at, uint64_t cell,
              uint64_t node_total) {
  for (const int rank : ranks) {
    const Bytes block = part(a.recv[rank], at, cell);
    if (rank != c.rank()) c.copy_within(node_total, block, ConstBytes(row, block.size()));
    row += block.size();
  }
}

template <bool kArrivalAware>
Task run(Comm& c, Args a) {
  const Placement& nodes = c.placement();
  const int here = nodes.node_of(c.rank()), others = nodes.node_count() - 1;
  const std::span<const int> locals = nodes.ranks_of(here);
  const int local = c.node().rank();
  const bool leads = local == 0;
  const uint64_t longest = a.longest(c.size());
  const uint64_t cell = std::min(
      longest, longest_cell(c.node().area_bytes(), nodes.node_count(), nodes.fewest_local(), nodes.most_local()));
  const uint64_t node_total = longest * static_cast<uint64_t>(c.size()) * locals.size();
  const NodeRows rows(c, cell * static_cast<uint64_t>(nodes.most_local()));
  const ConstBytes own = a.own(c.rank());
  c.copy(a.recv[c.rank()], own);
  for (uint64_t at = 0; at < longest; at += cell) {
    co_await c.next_step(rows.step_bytes());
    const ConstBytes mine = part(own, at, cell);
    const uint64_t before = row_bytes(a, locals.first(static_cast<size_t>(local)), at, cell);
    c.copy(Bytes(rows.row(here) + before, mine.size()), mine);
    int count = 1;
    for (int i = 1; i <= others; ++i) {
      const int node = (here + i) % nodes.node_count();
      const uint64_t coming = row_bytes(a, nodes.ranks_of(node), at, cell);
      if (coming > 0) ++count;
      if (!leads || coming == 0) continue;
      c.announce(nodes.leader_of(node), Bytes(rows.row(node), coming));
      c.watch(nodes.leader_of(node));
    }
    if (leads) {
      c.publish_call();
      co_await c.all_published();
      const ConstBytes row(rows.row(here), row_bytes(a, locals, at, cell));
      for (int i = 1; i <= others; ++i) {
        const int to = nodes.leader_of((here + i) % nodes.node_count());
        if (!kArrivalAware) co_await c.ready(to, row.size());
        c.put(to, row);  // a peer that has not arrived holds up no other
      }
      if (!kArrivalAware) co_await c.received();
    } else {
      c.publish();
    }
    for (int k = 0; k < count; ++k) {
      if (leads) {
        int from = c.rank();
        if (k > 0) from = co_await c.next_landing();
        rows.publish(k, count, nodes.node_of(from));
      } else {
        co_await rows.published(k);
      }
      const int node = rows.node(k);
      copy_out(c, a, nodes.ranks_of(node), rows.row(node), at, cell, node_total);
    }
    co_await c.flushed();
  }
}

}  // namespace

const char* why_not(const Shape& s) {
  return applies_to_nodes_of_ranks(s, longest_cell(s.area_bytes, s.nodes, s.fewest_local, s.most_local));
}

double cost_us(const Shape& s, const CostModel& m) {
  const uint64_t cell = longest_cell(s.area_bytes, s.nodes, s.fewest_local, s.most_local);
  const double coming = static_cast<double>(s.total) * (s.p - s.fewest_local) / s.p;  // to the emptiest node
  const double going = (s.nodes - 1) * longest_group(s, s.most_local);
  return leaders_exchange_us(s, m, rounds_of(s.bytes, cell), std::max(coming, going)) +
         m.copies_us(static_cast<double>(s.bytes)) + m.shared_copies_us(static_cast<double>(s.total));
}

namespace {

// PAP_Shm_Direct does the same and does not wait for nodes in order.
double plain_cost_us(const Shape& s, const CostModel& m) { return cost::kSecondChoice * cost_us(s, m); }

constexpr Algorithm row(ibcoll_collective_t collective, bool aware) {
  return {
      .collective = collective,
      .name = aware ? "pap_shm_direct" : "shm_direct",
      .about = aware ? "Qian, Afsahi, PAP_Shm_Direct; alpha + (p-L) m beta, N-1 messages for each of N nodes of L ranks"
                     : "Qian, Afsahi, Shm_Direct; as pap_shm_direct, in fixed order",
      .run = aware ? run<true> : run<false>,
      .why_not = why_not,
      .cost_us = aware ? cost_us : plain_cost_us,
      .uses_window = true};
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {row(IBCOLL_ALLGATHER, true), row(IBCOLL_ALLGATHER, false),
                                        row(IBCOLL_ALLGATHERV, true), row(IBCOLL_ALLGATHERV, false)};
  return kRows;
}

}  // namespace ibcoll::allgather::pap_shm_direct
