// SPDX-License-Identifier: BSD-3-Clause
// Alltoall(v) in which no rank waits for its node: a rank sends its blocks for a node in one message to one rank there,
// its host, as soon as the host has arrived. They land in memory that the node shares, and the host publishes them. So
// the blocks of the early ranks of a node leave while other ranks of that node are late. Blocks for the own node pass
// through shared memory.
// In alltoallv the sizes of these blocks go to the host first: the ranks that know them may not have arrived. A block
// that is longer than its cell goes straight to its rank: both ends know its size. In alltoall such blocks take several
// rounds.
// Source: PAP_Shm_Direct of Qian, Afsahi, "Process Arrival Pattern Aware Alltoall and Allgather on InfiniBand
// Clusters", with its first phase split by ranks (framework/node_lanes.h); sizes are ours.
// Rounds: one for each cell of a block (alltoallv: one). Cost, with N nodes of L ranks: N - 1 messages of L blocks per
// rank and round (alltoallv: twice), L times as many as with leaders; one step of the node window instead of two
// (three).
#include <algorithm>
#include <utility>

#include "runtime/collectives/alltoall/cells.h"
#include "runtime/collectives/alltoall/pap_shm_direct.h"
#include "runtime/collectives/alltoallv/pap_shm_direct.h"
#include "runtime/collectives/framework/node_lanes.h"
#include "runtime/collectives/framework/node_rows.h"

namespace ibcoll::alltoall::pap_shm_lanes {
namespace {

// Sends the row for these ranks to their host: from the send buffer if they are neighbours there, else from `room`.
// Returns the end of what is used of `room`.
std::byte* put_row(Comm& c, const Args& a, const Cells& cells, std::span<const int> ranks, int host, std::byte* room) {
  const bool neighbours = static_cast<size_t>(ranks.back() - ranks.front()) + 1 == ranks.size();
  if (neighbours && !cells.sized && cells.bytes == a.recv.bytes) {
    c.put(host, {a.send[ranks.front()].data(), cells.bytes * ranks.size()});
    return room;
  }
  std::byte* const end = pack(a, cells, ranks, room);
  std::byte* const blocks = room + cells.head(ranks.size());
  c.put(host, ConstBytes(room, blocks));
  c.put(host, ConstBytes(blocks, end));
  return end;
}

// Takes the block for this rank. False: it is not what this rank expects; the collective has failed.
bool take(Comm& c, const Args& a, const Cells& cells, const NodeLanes::Row& row) {
  const auto local = static_cast<size_t>(c.node().rank());
  const Bytes block = cells.now(a.recv[row.sender]);
  uint64_t before = block.size() * local;
  if (cells.sized) {
    before = sum_of_sizes(row.data, local);
    const uint64_t sent = sum_of_sizes(row.data, local + 1) - before;
    if (sent != block.size()) {
      c.mismatch(row.sender, sent, block.size(), "bytes of its block");
      return false;
    }
  }
  const std::byte* const blocks = row.data + cells.head(static_cast<size_t>(c.node().size()));
  c.copy(block, ConstBytes(blocks + before, block.size()));
  return true;
}

// What `sender` sends here has its sizes in the row, and its blocks may follow. False: there is no room for them; the
// collective has failed.
bool await_blocks(Comm& c, const Cells& cells, int sender, std::byte* row) {
  const auto locals = static_cast<size_t>(c.node().size());
  const uint64_t coming = sum_of_sizes(row, locals), room = cells.bytes * locals;
  if (coming > room) {
    c.mismatch(sender, coming, room, "bytes of blocks, against the room for them,");
    return false;
  }
  c.announce(sender, Bytes(row + cells.head(locals), coming));
  c.watch(sender);
  return true;
}

Task run(Comm& c, Args a) {
  const Placement& nodes = c.placement();
  const int here = nodes.node_of(c.rank()), others = nodes.node_count() - 1;
  const std::span<const int> locals = nodes.ranks_of(here);
  Cells cells(c, a, c.node().area_bytes());
  NodeLanes lanes(c, cells.row(locals.size()), cells.row(static_cast<size_t>(c.size()) - locals.size()));
  auto* const sizes_awaited = c.scratch_array<bool>(static_cast<uint64_t>(lanes.rows()));
  if (!lanes.usable() || !sizes_awaited) co_return;
  std::fill_n(sizes_awaited, lanes.rows(), cells.sized);
  for (int i = 1; i < c.size(); ++i)  // those of senders that this rank hosts come after their row
    if (const int from = c.peer(-i); cells.is_long(a.recv.size(from)) && !lanes.hosts(from))
      c.announce(from, a.recv[from]);
  c.copy_when_idle(a.recv[c.rank()], a.send[c.rank()]);
  const uint64_t end = cells.sized ? cells.bytes : a.recv.bytes;
  for (; cells.at < end; cells.at += cells.bytes) {
    co_await c.next_step(lanes.step_bytes());
    lanes.begin_step();
    for (int row = 0; row < lanes.rows(); ++row) {
      const int from = lanes.sender(row);
      if (from < 0) continue;
      const uint64_t blocks = cells.sized ? 0 : cells.now(a.recv[from]).size() * locals.size();
      c.announce(from, Bytes(lanes.row(row), cells.head(locals.size()) + blocks));
      c.watch(from);
    }
    std::byte* room = lanes.beside();
    for (int i = 1; i <= others; ++i) {  // a host that has not arrived holds up no other
      const int node = (here + i) % nodes.node_count();
      room = put_row(c, a, cells, nodes.ranks_of(node), lanes.host(node), room);
    }
    pack(a, cells, locals, lanes.own_row());
    lanes.publish_own();
    for (int i = 1; i < c.size(); ++i)
      if (cells.is_long(a.send.size(c.peer(i)))) c.put(c.peer(i), a.send[c.peer(i)]);
    while (!lanes.done()) {
      const int local = co_await c.next_part_or_landing(lanes.awaited());
      int sender = -1;
      if (local < 0) {
        sender = co_await c.next_landing();
        bool& blocks_follow = sizes_awaited[lanes.landing_row(sender)];
        if (std::exchange(blocks_follow, false)) {
          if (!await_blocks(c, cells, sender, lanes.row(lanes.landing_row(sender)))) co_return;
          continue;
        }
        if (cells.is_long(a.recv.size(sender))) c.announce(sender, a.recv[sender]);
      }
      if (!take(c, a, cells, local < 0 ? lanes.landed(sender) : lanes.take(local))) co_return;
    }
    co_await c.flushed();
  }
  co_await c.received();
}

template <ibcoll_collective_t kCollective>
const char* why_not(const Shape& s) {
  return applies_to_nodes_of_ranks(s, longest_cell(kCollective, s.area_bytes, s.p, s.fewest_local, s.most_local));
}

template <ibcoll_collective_t kCollective>
double cost_us(const Shape& s, const CostModel& m) {
  const bool sized = has_sizes(kCollective);
  const uint64_t cell = longest_cell(kCollective, s.area_bytes, s.p, s.fewest_local, s.most_local);
  const double block = static_cast<double>(s.bytes) + (sized ? cost::kUnknownPackedBlock : 0);
  const double leaving = block * s.most_local * (s.p - s.most_local);
  const bool in_place = !sized && s.nodes_in_rank_order && s.bytes <= cell;
  const double packed = in_place ? 0 : block * (s.p - s.most_local);
  const double sizes = sized ? lanes_message_us(s, m) : 0;
  const double us = sizes + lanes_exchange_us(s, m, sized ? 1 : rounds_of(s.bytes, cell), leaving) +
                    m.copies_us(packed + block * (s.p + s.most_local));
  if (sized) return lanes_us(alltoallv::pap_shm_direct::why_not, alltoallv::pap_shm_direct::cost_us, s, m, us);
  const double own = lanes_us(pap_shm_direct::why_not, pap_shm_direct::cost_us, s, m, us);
  // In pap_direct no rank waits for its node either, and no block for the host of its sender. With late ranks that is
  // 1.6 times as fast from 8 KB on, where both take as long without them. Measured as kLanes is.
  const double straight = direct_us(s, m);
  return straight <= cost::kSecondChoice * own ? std::max(own, cost::kSecondChoice * straight) : own;
}

// The late rank sends a row to each other node, and publishes the rows that it finds as a host; each rank there,
// and of its own node, waits for one step.
template <ibcoll_collective_t kCollective>
double late_us(const Shape& s, const CostModel& model) {
  const CostModel m = model_of_late(model);
  const bool sized = has_sizes(kCollective);
  const double block = static_cast<double>(s.bytes) + (sized ? cost::kUnknownPackedBlock : 0);
  const double row = block * s.most_local;
  return cost::kLanes * ((sized ? m.message_us(0) : 0) + 2 * m.step_us(s.most_local) + m.message_us(row) +
                         (s.nodes - 2) * m.stream_us(row) + m.copies_us(2 * block * s.p));
}

template <ibcoll_collective_t kCollective>
constexpr Algorithm row(const char* about) {
  return {.collective = kCollective,
          .name = "pap_shm_lanes",
          .about = about,
          .run = run,
          .why_not = why_not<kCollective>,
          .cost_us = cost_us<kCollective>,
          .late_us = late_us<kCollective>,
          .uses_window = true};
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {
      row<IBCOLL_ALLTOALL>(
          "as pap_shm_direct, no rank waits for its node; alpha + L (p-L) m beta, N-1 messages per rank"),
      row<IBCOLL_ALLTOALLV>("as pap_shm_direct, no rank waits for its node; 2 (N-1) messages per rank")};
  return kRows;
}

}  // namespace ibcoll::alltoall::pap_shm_lanes
