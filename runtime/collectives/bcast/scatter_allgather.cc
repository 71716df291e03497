// SPDX-License-Identifier: BSD-3-Clause
// Broadcast, scatter and allgather: a binomial tree scatters p blocks, a ring gathers them everywhere. Any p, any root.
// A rank in the middle of the tree has the blocks of all below it; those do not come to it again in the ring.
// Source: van de Geijn's broadcast in Thakur, Gropp, broadcast for long messages.
// Rounds: ceil(lg p) + p - 1. Cost: (ceil(lg p) + p - 1) alpha + 2 (p - 1)/p n beta.
#include "runtime/collectives/bcast/trees.h"
#include "runtime/collectives/framework/node_order.h"

namespace ibcoll::bcast::scatter_allgather {
namespace {

// p blocks of the message; the last ones may be shorter or empty.
struct BlocksOf {
  Bytes message;
  uint64_t block;
  Bytes of(int64_t first, int64_t end) const {
    return part(message, block * static_cast<uint64_t>(first), block * static_cast<uint64_t>(end - first));
  }
};

// How many blocks, its own first, rank v has after the scatter.
int64_t blocks_of(int v, int p) { return v == 0 ? p : std::min<int64_t>(v & -v, p - v); }

Task run(Comm& team, Args a) {
  const int* const order = ranks_by_node(team, a.root);
  if (!order) co_return;
  Comm& c = team.among(std::span(order, static_cast<size_t>(team.size())));
  const int p = c.size(), v = c.rank(), left = c.peer(-1), right = c.peer(1);
  const auto ranks = static_cast<uint64_t>(p);
  const BlocksOf blocks{a.buffer(), (a.bytes + ranks - 1) / ranks};
  const KnomialTree tree(p, v, 2);
  if (v > 0) {
    c.announce(tree.parent(), blocks.of(v, v + blocks_of(v, p)));
    co_await c.received();
  }
  for (int slot = 0; slot < tree.slots(); ++slot) {
    const auto child = static_cast<int>(std::min<int64_t>(tree.child(slot), p));
    if (child < p) c.put(child, blocks.of(child, child + blocks_of(child, p)));
  }
  // Round i brings block v - i from the left.
  uint64_t coming = 0;
  const int64_t rounds = p - blocks_of(v, p), rounds_right = p - blocks_of(right, p);
  for (int i = 1; i <= rounds; ++i) {
    const Bytes block = blocks.of(c.peer(-i), c.peer(-i) + 1);
    c.announce(left, block);
    coming += block.size();
  }
  for (int i = 1; i < p; ++i) {
    const int sent = c.peer(1 - i), received = c.peer(-i);
    if (i <= rounds_right) c.put(right, blocks.of(sent, sent + 1));
    if (i > rounds) continue;
    coming -= blocks.of(received, received + 1).size();
    co_await c.received_from(left, coming);
  }
  co_await c.flushed();
}

double cost_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(s.bytes), p = s.p;
  const TreeShape scatter = KnomialTree::shape(s.p, 2);
  return tree_us(scatter, m, 0, 1) + m.beta_us * n * (p - 1) / p + (p - 1) * m.message_us(n / p);
}

// The ring reaches the late rank at any of its rounds; in the tree its subtree waits.
double late_us(const Shape& s, const CostModel& model) {
  const CostModel m = model_of_late(model);
  const double n = static_cast<double>(s.bytes), p = s.p;
  return ((p - 1) / 2 + knomial_height(p, 2)) * m.message_us(0) + m.beta_us * n * (1 + ceil_log2(s.p) / p);
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {
      {.collective = IBCOLL_BCAST,
       .name = "scatter_allgather",
       .about = "van de Geijn; binomial scatter and ring; (lg p + p-1) alpha + 2 (p-1)/p n beta",
       .run = run,
       .cost_us = cost_us,
       .late_us = late_us}};
  return kRows;
}

}  // namespace ibcoll::bcast::scatter_allgather
