// SPDX-License-Identifier: BSD-3-Clause
// Allgather(v) in which no rank waits for its node: a rank sends its block once to each other node, to one rank there,
// its host, as soon as the host has arrived. The block lands in memory that the node shares, and the host publishes it.
// So the blocks of the early ranks of a node leave while other ranks of that node are late.
// Source: PAP_Shm_Direct of Qian, Afsahi, "Process Arrival Pattern Aware Alltoall and Allgather on InfiniBand
// Clusters", with its first phase split by ranks (framework/node_lanes.h).
// Rounds: one for each cell of the longest block. Cost, with N nodes of L ranks: N - 1 messages of a block per rank and
// round, L times as many as with leaders; one step of the node window instead of two.
#include <algorithm>

#include "runtime/collectives/allgather/pap_shm_direct.h"
#include "runtime/collectives/framework/node_lanes.h"
#include "runtime/collectives/framework/node_rows.h"

namespace ibcoll::allgather::pap_shm_lanes {
namespace {

// Longer blocks move in several rounds.
uint64_t longest_cell(uint64_t area_bytes, int p, int fewest_local) {
  const uint64_t room = NodeLanes::room(area_bytes, p, fewest_local);
  return room == 0 ? 0 : room / static_cast<uint64_t>(NodeLanes::rows_of(p, fewest_local));
}

Task run(Comm& c, Args a) {
  const Placement& nodes = c.placement();
  const int here = nodes.node_of(c.rank()), others = nodes.node_count() - 1;
  const uint64_t longest = a.longest(c.size());
  const uint64_t cell = std::min(longest, longest_cell(c.node().area_bytes(), c.size(), nodes.fewest_local()));
  const uint64_t node_total = longest * static_cast<uint64_t>(c.size() * c.node().size());
  NodeLanes lanes(c, cell);
  if (!lanes.usable()) co_return;
  const ConstBytes own = a.own(c.rank());
  for (uint64_t at = 0; at < longest; at += cell) {
    co_await c.next_step(lanes.step_bytes());
    lanes.begin_step();
    for (int row = 0; row < lanes.rows(); ++row) {
      const int from = lanes.sender(row);
      if (from < 0) continue;
      c.announce(from, Bytes(lanes.row(row), part(a.recv[from], at, cell).size()));
      c.watch(from);
    }
    const ConstBytes mine = part(own, at, cell);
    for (int i = 1; i <= others; ++i)  // one that has not arrived holds up no other
      c.put(lanes.host((here + i) % nodes.node_count()), mine);
    c.copy(Bytes(lanes.own_row(), mine.size()), mine);
    lanes.publish_own();
    c.copy(part(a.recv[c.rank()], at, cell), mine);
    while (!lanes.done()) {
      const int local = co_await c.next_part_or_landing(lanes.awaited());
      int sender = -1;
      if (local < 0) sender = co_await c.next_landing();
      const NodeLanes::Row row = local < 0 ? lanes.landed(sender) : lanes.take(local);
      const Bytes block = part(a.recv[row.sender], at, cell);
      c.copy_within(node_total, block, ConstBytes(row.data, block.size()));
    }
    co_await c.flushed();
  }
}

const char* why_not(const Shape& s) {
  return applies_to_nodes_of_ranks(s, longest_cell(s.area_bytes, s.p, s.fewest_local));
}

double cost_us(const Shape& s, const CostModel& m) {
  const uint64_t cell = longest_cell(s.area_bytes, s.p, s.fewest_local);
  const double coming = static_cast<double>(s.total) * (s.p - s.fewest_local) / s.p;  // to the emptiest node
  const double going = (s.nodes - 1) * longest_group(s, s.most_local);
  const double us = lanes_exchange_us(s, m, rounds_of(s.bytes, cell), std::max(coming, going)) +
                    m.copies_us(static_cast<double>(s.bytes)) + m.shared_copies_us(static_cast<double>(s.total));
  return lanes_us(pap_shm_direct::why_not, pap_shm_direct::cost_us, s, m, us);
}

// The late rank sends its block to each other node, and publishes the blocks that it finds as a host; each rank there,
// and of its own node, waits for one step.
double late_us(const Shape& s, const CostModel& model) {
  const CostModel m = model_of_late(model);
  const double block = static_cast<double>(s.bytes);
  return cost::kLanes * (2 * m.step_us(s.most_local) + m.message_us(block) + (s.nodes - 2) * m.stream_us(block) +
                         m.copies_us(block + static_cast<double>(s.total)));
}

constexpr Algorithm row(ibcoll_collective_t collective) {
  return {.collective = collective,
          .name = "pap_shm_lanes",
          .about = "as pap_shm_direct, no rank waits for its node; alpha + (p-L) m beta, N-1 messages per rank",
          .run = run,
          .why_not = why_not,
          .cost_us = cost_us,
          .late_us = late_us,
          .uses_window = true};
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {row(IBCOLL_ALLGATHER), row(IBCOLL_ALLGATHERV)};
  return kRows;
}

}  // namespace ibcoll::allgather::pap_shm_lanes
