// SPDX-License-Identifier: BSD-3-Clause
// Alltoall in which no rank waits for its node: a rank sends what it has for a node in one message to one rank there,
// its host, as soon as that has arrived. What lands is in memory that the node shares, and the host tells its node of
// it. So what the early ranks of a node bring leaves while others of that node are late. Blocks for the own node pass
// through shared memory.
// Source: PAP_Shm_Direct of Qian, Afsahi, "Process Arrival Pattern Aware Alltoall and Allgather on InfiniBand
// Clusters", with its first phase split by ranks (framework/node_lanes.h).
// Cost, with N nodes of L ranks: N - 1 messages of L blocks per rank, L times as many as with leaders; one step of the
// node window instead of two.
#include <algorithm>

#include "runtime/collectives/framework/algorithm.h"
#include "runtime/collectives/framework/node_lanes.h"
#include "runtime/collectives/framework/node_rows.h"

namespace ibcoll::alltoall::pap_shm_lanes {
namespace {

// Longer blocks move in several rounds. An area has rows for p ranks and the own node, and all that leaves.
uint64_t longest_cell(uint64_t area_bytes, int p, int fewest_local, int most_local) {
  return NodeLanes::room(area_bytes, p, fewest_local) / static_cast<uint64_t>(2 * p + most_local);
}

// The blocks for these ranks, side by side.
void pack(const Args& a, std::span<const int> ranks, uint64_t at, uint64_t now, std::byte* to) {
  for (size_t i = 0; i < ranks.size(); ++i) Comm::copy(Bytes(to + i * now, now), part(a.send[ranks[i]], at, now));
}

// The same, where they are if they are so in the send buffer, else at `room`.
ConstBytes row_for(const Args& a, std::span<const int> ranks, uint64_t at, uint64_t now, std::byte* room) {
  const auto count = static_cast<uint64_t>(ranks.size());
  const bool neighbours = static_cast<uint64_t>(ranks.back() - ranks.front()) + 1 == count;
  if (neighbours && now == a.recv.bytes) return {a.send[ranks.front()].data(), now * count};
  pack(a, ranks, at, now, room);
  return {room, now * count};
}

Task run(Comm& c, Args a) {
  const Placement& nodes = c.placement();
  const int here = nodes.node_of(c.rank()), others = nodes.node_count() - 1;
  const std::span<const int> locals = nodes.ranks_of(here);
  const uint64_t cell =
      std::min(a.recv.bytes, longest_cell(c.node().area_bytes(), c.size(), nodes.fewest_local(), nodes.most_local()));
  NodeLanes lanes(c, cell * locals.size(), cell * (static_cast<uint64_t>(c.size()) - locals.size()));
  if (!lanes.usable()) co_return;
  c.copy(a.recv[c.rank()], a.send[c.rank()]);
  for (uint64_t at = 0; at < a.recv.bytes; at += cell) {
    const uint64_t now = std::min(cell, a.recv.bytes - at);
    co_await c.next_step(lanes.step_bytes());
    lanes.begin_step();
    for (int row = 0; row < lanes.rows(); ++row) {
      const int from = lanes.sender(row);
      if (from < 0) continue;
      c.announce(from, Bytes(lanes.row(row), now * locals.size()));
      c.watch(from);
    }
    std::byte* room = lanes.beside();
    for (int i = 1; i <= others; ++i) {
      const int node = (here + i) % nodes.node_count();
      const ConstBytes row = row_for(a, nodes.ranks_of(node), at, now, room);
      c.put(lanes.host(node), row);  // one that has not arrived holds up no other
      room += row.size();
    }
    pack(a, locals, at, now, lanes.own_row());
    lanes.tell_own();
    while (!lanes.done()) {
      const int local = co_await c.next_part_or_landing(lanes.awaited());
      int sender = -1;
      if (local < 0) sender = co_await c.next_landing();
      const NodeLanes::Row row = local < 0 ? lanes.landed(sender) : lanes.take(local);
      c.copy(part(a.recv[row.sender], at, now),
             ConstBytes(row.data + now * static_cast<uint64_t>(c.node().rank()), now));
    }
    co_await c.flushed();
  }
}

const char* why_not(const Shape& s) {
  return applies_to_nodes_of_ranks(s, longest_cell(s.area_bytes, s.p, s.fewest_local, s.most_local));
}

double cost_us(const Shape& s, const CostModel& m) {
  const uint64_t cell = longest_cell(s.area_bytes, s.p, s.fewest_local, s.most_local);
  const double block = static_cast<double>(s.bytes), leaving = block * s.most_local * (s.p - s.most_local);
  const double packed = s.nodes_in_rank_order && s.bytes <= cell ? 0 : block * (s.p - s.most_local);
  const double us =
      lanes_exchange_us(s, m, rounds_of(s.bytes, cell), leaving) + m.copies_us(packed + block * (s.p + s.most_local));
  return no_cheaper_than_leaders_us(IBCOLL_ALLTOALL, s, m, us);
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {
      {.collective = IBCOLL_ALLTOALL,
       .name = "pap_shm_lanes",
       .about = "as pap_shm_direct, no rank waits for its node; alpha + L (p-L) m beta, N-1 messages per rank",
       .run = run,
       .why_not = why_not,
       .cost_us = cost_us,
       .uses_window = true}};
  return kRows;
}

}  // namespace ibcoll::alltoall::pap_shm_lanes
