// SPDX-License-Identifier: BSD-3-Clause
// Alltoall, Shm_Direct and PAP_Shm_Direct: (1) the ranks of a node write their blocks into shared memory, those for one
// node side by side; (2) the leaders of the nodes exchange these rows directly, and what arrives lands in memory that
// the node shares; (3) all ranks copy their blocks out of the rows. Shm_Direct sends to node + 1, node + 2, ... and
// waits until one is ready before it sends to the next; phase 3 begins when all rows have landed. PAP_Shm_Direct serves
// nodes as they arrive, and the ranks copy out of each row as it lands (where they share one core, of short rows when
// all have landed).
// Source: Qian, Afsahi, "Process Arrival Pattern Aware Alltoall and Allgather on InfiniBand Clusters".
// Cost, with N nodes of L ranks: (N - 1) messages of L^2 blocks per node instead of p - 1 messages per rank.
#include "runtime/collectives/alltoall/pap_shm_direct.h"

#include <algorithm>

#include "runtime/collectives/framework/node_rows.h"

namespace ibcoll::alltoall::pap_shm_direct {
namespace {

// Blocks longer than this move in several rounds. A row holds the blocks for a node, and after them those from there.
uint64_t longest_cell(uint64_t area_bytes, int nodes, int fewest_local, int most_local) {
  const auto most = static_cast<uint64_t>(most_local);
  return NodeRows::longest(area_bytes, nodes, fewest_local) / (2 * most * most);
}

template <bool kArrivalAware>
Task run(Comm& c, Args a) {
  const Placement& nodes = c.placement();
  const int here = nodes.node_of(c.rank()), others = nodes.node_count() - 1;
  const auto local = static_cast<uint64_t>(c.node().rank()), locals = static_cast<uint64_t>(c.node().size());
  const bool leads = local == 0;
  const uint64_t cell = std::min(
      a.recv.bytes, longest_cell(c.node().area_bytes(), nodes.node_count(), nodes.fewest_local(), nodes.most_local()));
  const NodeRows rows(c, 2 * cell * locals * static_cast<uint64_t>(nodes.most_local()));
  c.copy(a.recv[c.rank()], a.send[c.rank()]);
  for (uint64_t at = 0; at < a.recv.bytes; at += cell) {
    const uint64_t now = std::min(cell, a.recv.bytes - at);
    co_await c.next_step(rows.step_bytes());
    for (int i = 0; i <= others; ++i) {
      const int node = (here + i) % nodes.node_count();
      const std::span<const int> theirs = nodes.ranks_of(node);
      const uint64_t row_bytes = now * locals * theirs.size();
      if (leads && i > 0) {
        c.announce(nodes.leader_of(node), Bytes(rows.row(node) + row_bytes, row_bytes));
        c.watch(nodes.leader_of(node));
      }
      std::byte* to = rows.row(node) + now * local * theirs.size();
      for (const int rank : theirs) {
        if (rank != c.rank()) c.copy(Bytes(to, now), part(a.send[rank], at, now));
        to += now;
      }
    }
    if (leads) {
      c.publish_call();
      co_await c.all_published();
      for (int i = 1; i <= others; ++i) {
        const int node = (here + i) % nodes.node_count();
        const std::span<const int> theirs = nodes.ranks_of(node);
        const ConstBytes row(rows.row(node), now * locals * theirs.size());
        if (!kArrivalAware) co_await c.ready(nodes.leader_of(node), row.size());
        c.put(nodes.leader_of(node), row);  // a peer that has not arrived holds up no other
      }
      if (!kArrivalAware) co_await c.received();
    } else {
      c.publish();
    }
    for (int k = 0; k <= others; ++k) {
      if (leads) {
        int from = c.rank();
        if (k > 0) from = co_await c.next_landing();
        rows.publish(k, others + 1, nodes.node_of(from));
      } else {
        co_await rows.published(k);
      }
      const int node = rows.node(k);
      const std::span<const int> theirs = nodes.ranks_of(node);
      const std::byte* from = rows.row(node) + (node == here ? 0 : now * locals * theirs.size()) + now * local;
      for (const int rank : theirs) {
        if (rank != c.rank()) c.copy(part(a.recv[rank], at, now), ConstBytes(from, now));
        from += now * locals;
      }
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
  const double sent = static_cast<double>(s.bytes) * s.p;
  const double leaving = sent * s.most_local * (s.p - s.most_local) / s.p;
  return leaders_exchange_us(s, m, rounds_of(s.bytes, cell), leaving) + m.copies_us(2 * sent);
}

namespace {

// PAP_Shm_Direct does the same and does not wait for nodes in order.
double plain_cost_us(const Shape& s, const CostModel& m) { return cost::kSecondChoice * cost_us(s, m); }

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {
      {.collective = IBCOLL_ALLTOALL,
       .name = "pap_shm_direct",
       .about = "Qian, Afsahi, PAP_Shm_Direct; alpha + L (p-L) m beta, N-1 messages for each of N nodes",
       .run = run<true>,
       .why_not = why_not,
       .cost_us = cost_us,
       .uses_window = true},
      {.collective = IBCOLL_ALLTOALL,
       .name = "shm_direct",
       .about = "Qian, Afsahi, Shm_Direct; as pap_shm_direct, in fixed order",
       .run = run<false>,
       .why_not = why_not,
       .cost_us = plain_cost_us,
       .uses_window = true}};
  return kRows;
}

}  // namespace ibcoll::alltoall::pap_shm_direct
