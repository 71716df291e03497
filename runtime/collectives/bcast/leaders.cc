// SPDX-License-Identifier: BSD-3-Clause
// Broadcast in two phases, piece by piece: one rank of each node, its leader or the root, receives a piece, sends it on
// to those of other nodes, and writes it into the node window, from where the others copy it while the next piece is on
// its way.
// Between nodes: a binomial tree ("leaders", for short messages), or a chain ("leaders_chain", for long ones).
// Source: phase 1 is Thakur, Gropp, broadcast for short messages, on N nodes. Rounds: ceil(lg N), or N - 2 + n / piece.
// Cost: ceil(lg N) (alpha + n beta), or (N - 2 + n / B) (alpha + B beta); and 1 + L copies of n on a node of L ranks.
#include "runtime/collectives/bcast/trees.h"
#include "runtime/collectives/framework/node_rows.h"

namespace ibcoll::bcast::leaders {
namespace {

constexpr uint64_t kLeastPiece = 256, kMostPiece = uint64_t{1} << 24;

// The ranks that stand for the nodes: the root for its own, leaders for the others. nullptr: no memory, the collective
// has failed.
int* heads_of_nodes(Comm& c, int root) {
  const Placement& nodes = c.placement();
  const auto count = static_cast<uint64_t>(nodes.node_count());
  int* const heads = c.scratch_array<int>(count);
  if (heads) std::copy_n(nodes.leaders().begin(), count, heads);
  if (heads) heads[nodes.node_of(root)] = root;
  return heads;
}

template <typename Tree>
Task lead(Comm& c, Args a, uint64_t piece) {
  const int* const heads = heads_of_nodes(c, a.root);
  if (!heads) co_return;
  const int nodes = c.placement().node_count(), top = c.placement().node_of(a.root);
  Comm& others = c.among(std::span(heads, static_cast<size_t>(nodes)));
  const Tree tree(nodes, (others.rank() - top + nodes) % nodes, 2);
  const int parent = c.rank() == a.root ? -1 : (tree.parent() + top) % nodes;
  NodeWindow& w = c.node();
  if (parent >= 0) others.announce(parent, a.buffer());
  for (uint64_t at = 0; at < a.bytes; at += piece) {
    const Bytes now = part(a.buffer(), at, piece);
    if (parent >= 0) co_await others.received_from(parent, a.bytes - at - now.size());
    for (int slot = 0; slot < tree.slots(); ++slot)
      if (const int64_t child = tree.child(slot); child < nodes)
        others.put_piece(static_cast<int>((child + top) % nodes), now, a.bytes);
    if (w.size() == 1) continue;
    co_await c.next_sole_step(piece);
    w.write(Bytes(w.sole_area(w.rank(), piece), now.size()), now);
    c.publish();
  }
  co_await c.flushed();
}

template <typename Tree>
Task run(Comm& c, Args a) {
  NodeWindow& w = c.node();
  const uint64_t piece = std::min({a.bytes, a.parameter, w.area_bytes()});
  const Placement& nodes = c.placement();
  const int here = nodes.node_of(c.rank());
  const std::span<const int> locals = nodes.ranks_of(here);
  int head = 0;
  if (here == nodes.node_of(a.root))
    head = static_cast<int>(std::find(locals.begin(), locals.end(), a.root) - locals.begin());
  if (w.rank() == head) {
    co_await lead<Tree>(c, a, piece);
    co_return;
  }
  for (uint64_t at = 0; at < a.bytes; at += piece) {
    const Bytes now = part(a.buffer(), at, piece);
    co_await c.next_sole_step(piece);
    c.publish();
    co_await c.published(head);
    c.copy(now, ConstBytes(w.sole_area(head, piece), now.size()));
  }
}

template <typename Tree>
double cost_us(const Shape& s, const CostModel& m) {
  const auto n = static_cast<double>(s.bytes);
  const auto piece = static_cast<double>(std::min(s.parameter, s.area_bytes));
  const double pieces = n > piece ? std::ceil(n / piece) : 1;
  // The root and its node copy while pieces travel; the last one is copied after that.
  const double last = m.copy_us * n / pieces + m.step_us(s.most_local) + m.shared_copies_us(n / pieces);
  return tree_us(Tree::shape(s.nodes, 2), model_of_leaders(s, m), n, piece) + last + m.pipelined_steps_us(pieces - 1);
}

// One rank of each node is in the tree; all copy.
template <typename Tree>
double late_us(const Shape& s, const CostModel& model) {
  const CostModel m = model_of_late(model);
  const auto n = static_cast<double>(s.bytes), piece = static_cast<double>(std::min(s.parameter, s.area_bytes));
  const double leader = late_tree_us(Tree::height(s.nodes, 2), 1, m, n, piece) + m.step_us(s.most_local);
  return leader / s.most_local + m.copy_us * n;
}

template <typename Tree>
uint64_t choose(const Shape& s, const CostModel& m) {
  return best_piece<cost_us<Tree>>(s, m, 4096, std::max(s.area_bytes, kLeastPiece), s.bytes);
}

const char* why_not(const Shape& s) { return applies_to_nodes_of_ranks(s, s.area_bytes); }

template <typename Tree>
constexpr Algorithm row(const char* name, const char* about) {
  return {.collective = IBCOLL_BCAST,
          .name = name,
          .about = about,
          .parameter = {Parameter::Unit::kBytes, "piece", kLeastPiece, kMostPiece},
          .run = run<Tree>,
          .why_not = why_not,
          .choose = choose<Tree>,
          .cost_us = cost_us<Tree>,
          .late_us = late_us<Tree>,
          .uses_window = true};
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {
      row<KnomialTree>("leaders", "binomial tree of nodes, node window inside; ceil(lg N) (alpha + n beta)"),
      row<Chain>("leaders_chain", "chain of nodes in pieces, node window inside; (N-2 + n/B) (alpha + B beta)")};
  return kRows;
}

}  // namespace ibcoll::bcast::leaders
