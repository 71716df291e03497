// SPDX-License-Identifier: BSD-3-Clause
// Alltoallv, PAP_Shm_Direct, for short blocks: (1) the ranks of a node publish their sizes in shared memory; (2) they
// write their blocks there, those for one node side by side after their sizes; (3) the leaders of the nodes exchange
// these rows directly, in the order in which nodes arrive, and rows land in memory that the node shares; (4) all ranks
// check the sizes and copy their blocks out. Blocks of more bytes than a row has room for move in up to kRounds rounds,
// if they have no more than kLongest bytes; longer ones go straight to their ranks at the end: both ends know their
// size.
// Source: Qian, Afsahi, "Process Arrival Pattern Aware Alltoall and Allgather on InfiniBand Clusters"; irregular sizes
// are ours.
// Cost, with N nodes of L ranks: (N - 1) messages of L^2 blocks per node and round instead of p - 1 messages per rank.
#include "runtime/collectives/alltoallv/pap_shm_direct.h"

#include <algorithm>
#include <cstring>

#include "runtime/collectives/framework/node_rows.h"

namespace ibcoll::alltoallv::pap_shm_direct {
namespace {

constexpr uint64_t kRounds = 4;
constexpr uint64_t kLongest = 16 << 10;  // bytes: two copies more cost what a message of its own does
using Size = uint32_t;

// Bytes of a block that a round moves. A row holds the blocks for a node, and after them those from there, each with
// their sizes.
uint64_t longest_cell(uint64_t area_bytes, int nodes, int fewest_local, int most_local) {
  const auto most = static_cast<uint64_t>(most_local);
  const uint64_t block = NodeRows::longest(area_bytes, nodes, fewest_local) / (2 * most * most);
  return block > sizeof(Size) ? block - sizeof(Size) : 0;
}

uint64_t table_bytes(int p) { return 2 * sizeof(Size) * static_cast<uint64_t>(p); }

// The blocks that the ranks of the node send and receive, but for long ones, and their layout in the rows.
struct Node {
  const Placement& nodes;
  int here, p;
  uint64_t cell;
  const Size* tables;  // of each local rank: what it sends to each rank, and what it receives
  uint64_t at = 0;     // of the round: from here on each block is moved

  std::span<const int> locals() const { return nodes.ranks_of(here); }
  Size sends(size_t local, int rank) const {
    return tables[2 * local * static_cast<size_t>(p) + static_cast<size_t>(rank)];
  }
  Size receives(size_t local, int rank) const { return sends(local, p + rank); }
  bool is_short(uint64_t bytes) const { return bytes <= std::max(cell, std::min(kRounds * cell, kLongest)); }
  Size table_entry(uint64_t bytes) const { return is_short(bytes) ? static_cast<Size>(bytes) : 0; }
  uint64_t now(uint64_t bytes) const { return bytes > at ? std::min(cell, bytes - at) : 0; }
  // The sizes are in front of the first round's row.
  uint64_t head(int node) const { return at > 0 ? 0 : sizeof(Size) * locals().size() * nodes.ranks_of(node).size(); }
  // Bytes in front of the blocks of a local rank in the row that goes to a node; of all local ranks: of the row.
  uint64_t outgoing(int node, size_t local) const {
    uint64_t bytes = head(node);
    for (size_t l = 0; l < local; ++l)
      for (const int rank : nodes.ranks_of(node)) bytes += now(sends(l, rank));
    return bytes;
  }
  // The bytes of the row that comes from a node.
  uint64_t incoming(int node) const {
    uint64_t bytes = head(node);
    for (size_t l = 0; l < locals().size(); ++l)
      for (const int rank : nodes.ranks_of(node)) bytes += now(receives(l, rank));
    return bytes;
  }
  uint64_t longest() const {
    const Size* const end = tables + 2 * locals().size() * static_cast<size_t>(p);
    return *std::max_element(tables, end);
  }
};

void write_blocks(Comm& c, const Args& a, const Node& n, int node, std::byte* row) {
  const auto local = static_cast<size_t>(c.node().rank());
  const std::span<const int> theirs = n.nodes.ranks_of(node);
  std::byte* size = row + sizeof(Size) * local * theirs.size();
  std::byte* to = row + n.outgoing(node, local);
  for (const int rank : theirs) {
    const Size bytes = n.sends(local, rank);
    if (n.at == 0) std::memcpy(size, &bytes, sizeof bytes), size += sizeof bytes;
    const ConstBytes block = part(a.send[rank], n.at, n.now(bytes));
    c.copy(Bytes(to, block.size()), block);
    to += block.size();
  }
}

// False: what has come is not what this rank expects; the collective has failed.
bool take_blocks(Comm& c, const Args& a, const Node& n, int node, const std::byte* row) {
  const auto local = static_cast<size_t>(c.node().rank());
  const size_t locals = n.locals().size();
  const std::byte* size = row + sizeof(Size) * local;
  const std::byte* from = row + n.head(node);
  for (const int rank : n.nodes.ranks_of(node)) {
    const Size wanted = n.receives(local, rank);
    Size sent = wanted;
    if (n.at == 0) std::memcpy(&sent, size, sizeof sent), size += sizeof sent * locals;
    if (sent != wanted) {
      c.mismatch(rank, sent, wanted, "bytes of its block");
      return false;
    }
    for (size_t l = 0; l < locals; ++l) {
      const uint64_t bytes = n.now(n.receives(l, rank));
      if (l == local) c.copy(part(a.recv[rank], n.at, bytes), ConstBytes(from, bytes));
      from += bytes;
    }
  }
  return true;
}

// Shares the sizes that each rank of the node sends and receives.
Task share_sizes(Comm& c, const Args* a, const Node* n, Size* tables) {
  const uint64_t bytes = table_bytes(c.size());
  const auto p = static_cast<size_t>(c.size());
  co_await c.next_step(bytes);
  auto* const mine = reinterpret_cast<Size*>(c.node().area(c.node().rank(), bytes));
  for (size_t rank = 0; rank < p; ++rank) {
    mine[rank] = n->table_entry(a->send.size(static_cast<int>(rank)));
    mine[p + rank] = n->table_entry(a->recv.size(static_cast<int>(rank)));
  }
  c.publish();
  co_await c.all_published();
  for (int local = 0; local < c.node().size(); ++local)
    std::memcpy(tables + 2 * p * static_cast<size_t>(local), c.node().area(local, bytes), bytes);
}

// Rows of the round: out, exchanged by the leaders, and in, the order in which they land.
Task exchange_rows(Comm& c, const Args* a, const Node* n, uint64_t half) {
  const NodeRows rows(c, 2 * half);
  const int others = n->nodes.node_count() - 1;
  const bool leads = c.node().rank() == 0;
  co_await c.next_step(rows.step_bytes());
  int count = 1;
  for (int i = 0; i <= others; ++i) {
    const int node = (n->here + i) % n->nodes.node_count();
    write_blocks(c, *a, *n, node, rows.row(node));
    const uint64_t coming = i > 0 ? n->incoming(node) : 0;
    if (coming > 0) ++count;
    if (!leads || coming == 0) continue;
    c.announce(n->nodes.leader_of(node), Bytes(rows.row(node) + half, coming));
    c.watch(n->nodes.leader_of(node));
  }
  if (leads) {
    c.publish_part();
    co_await c.all_published();
    for (int i = 1; i <= others; ++i) {
      const int node = (n->here + i) % n->nodes.node_count();
      c.put(n->nodes.leader_of(node), ConstBytes(rows.row(node), n->outgoing(node, n->locals().size())));
    }
  } else {
    c.publish();
  }
  for (int k = 0; k < count; ++k) {
    if (leads) {
      int from = c.rank();
      if (k > 0) from = co_await c.next_landing();
      rows.publish(k, count, n->nodes.node_of(from));
    } else {
      co_await rows.published(k);
    }
    const int node = rows.node(k);
    if (!take_blocks(c, *a, *n, node, rows.row(node) + (node == n->here ? 0 : half))) co_return;
  }
  co_await c.flushed();
}

Task run(Comm& c, Args a) {
  const Placement& nodes = c.placement();
  const auto locals = static_cast<uint64_t>(c.node().size());
  auto* const tables = reinterpret_cast<Size*>(c.scratch(locals * table_bytes(c.size())));
  if (!tables) co_return;
  const uint64_t cell =
      longest_cell(c.node().area_bytes(), nodes.node_count(), nodes.fewest_local(), nodes.most_local());
  Node node{nodes, nodes.node_of(c.rank()), c.size(), cell, tables};
  co_await share_sizes(c, &a, &node, tables);
  const uint64_t longest = node.longest();
  const uint64_t half = (std::min(cell, longest) + sizeof(Size)) * locals * static_cast<uint64_t>(nodes.most_local());
  do {
    co_await exchange_rows(c, &a, &node, half);
    node.at += cell;
  } while (node.at < longest);
  for (int i = 0; i < c.size(); ++i)
    if (!node.is_short(a.recv.size(c.peer(-i))) && i > 0) c.announce(c.peer(-i), a.recv[c.peer(-i)]);
  if (!node.is_short(a.send.size(c.rank()))) c.copy_when_idle(a.recv[c.rank()], a.send[c.rank()]);
  for (int i = 1; i < c.size(); ++i)
    if (!node.is_short(a.send.size(c.peer(i)))) c.put(c.peer(i), a.send[c.peer(i)]);
  co_await c.received();
  co_await c.flushed();
}

}  // namespace

const char* why_not(const Shape& s) {
  if (const char* const reason =
          applies_to_nodes_of_ranks(s, longest_cell(s.area_bytes, s.nodes, s.fewest_local, s.most_local)))
    return reason;
  return s.area_bytes >= table_bytes(s.p) ? nullptr
                                          : "the node window is too small for the sizes (IBCOLL_SHM_SLOT_BYTES)";
}

double cost_us(const Shape& s, const CostModel& m) {
  const double sent = (cost::kUnknownPackedBlock + static_cast<double>(s.bytes)) * s.p;
  const double leaving = sent * s.most_local * (s.p - s.most_local) / s.p;
  return m.step_us(s.most_local) + leaders_exchange_us(s, m, 1, leaving) + m.copies_us(2 * sent);
}

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {
      {.collective = IBCOLL_ALLTOALLV,
       .name = "pap_shm_direct",
       .about = "Qian, Afsahi, PAP_Shm_Direct with sizes; N-1 messages for each of N nodes; long blocks go straight",
       .run = run,
       .why_not = why_not,
       .cost_us = cost_us,
       .uses_window = true}};
  return kRows;
}

}  // namespace ibcoll::alltoallv::pap_shm_direct
