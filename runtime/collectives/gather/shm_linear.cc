// SPDX-License-Identifier: BSD-3-Clause
// Gather(v), node-aware, for few nodes: the ranks of a node write their blocks to the node window; its gateway (the root
// on the root's node, else the leader) sends them straight to the root, in one message. In gatherv a message with the
// sizes goes first: the root compares them with its list, and the leader waits for no answer. Blocks of more bytes than
// the threshold, or than an area of the window, go from their ranks to the root. For any placement.
// Source: the leaders of Qian, Afsahi; between nodes linear, of Thakur, Gropp.
// Cost, N nodes: a step of the window, 2 copies, alpha; N - 1 messages (gatherv: 2 (N - 1)) at the root.
#include "runtime/collectives/gather/node_stage.h"

namespace ibcoll::gather::shm_linear {

// The blocks that come from another node. A coroutine of g++ 12 holds no type of an unnamed namespace.
struct FromNode {
  uint64_t* sizes = nullptr;     // of the blocks of its ranks
  bool open = false;             // the blocks are announced
  std::byte* landing = nullptr;  // nullptr: in place
};

namespace {

// At the root. Each of these is true if the node sends one more message; false also if the collective has failed.
bool announce_sizes(Comm& c, FromNode& from, int node) {
  const uint64_t bytes = sizeof(uint64_t) * c.placement().ranks_of(node).size();
  std::byte* const sizes = c.scratch(bytes);
  if (!sizes) return false;
  from.sizes = reinterpret_cast<uint64_t*>(sizes);
  c.announce(c.placement().leader_of(node), Bytes(sizes, bytes));
  c.watch(c.placement().leader_of(node));
  return true;
}

bool announce_blocks(Comm& c, const NodeStage& stage, const Args& a, FromNode& from, int node) {
  const ConstBlocks blocks = a.recv_to_read();
  const uint64_t bytes = stage.bytes_of(blocks, node);
  const auto each_stretch = [&](auto each) { stage.each_stretch(blocks, node, each); };
  from.open =
      bytes > 0 && announce_stretches(c, c.placement().leader_of(node), bytes, a.recv, each_stretch, &from.landing);
  return from.open;
}

// The sizes of a node have arrived. False: they are not those of the root's list, and the collective has failed.
bool agrees(Comm& c, const FromNode& from, int node, const Args& a) {
  const std::span<const int> ranks = c.placement().ranks_of(node);
  for (size_t i = 0; i < ranks.size(); ++i)
    if (from.sizes[i] != a.recv.size(ranks[i])) {
      c.mismatch(ranks[i], from.sizes[i], a.recv.size(ranks[i]), "bytes of its block");
      return false;
    }
  return true;
}

// At a leader, of what its ranks have published.
template <bool kSizesFirst>
void send(Comm& c, const NodeStage& stage, ConstBytes own, int root) {
  const size_t locals = stage.locals().size();
  const uint64_t bytes = stage.about().root_bytes;
  std::byte* const sizes = c.scratch(sizeof(uint64_t) * locals);
  std::byte* const node = c.scratch(bytes);
  if (!sizes || !node) return;
  if (kSizesFirst) {
    for (size_t l = 0; l < locals; ++l) reinterpret_cast<uint64_t*>(sizes)[l] = stage.size(static_cast<int>(l));
    c.put(root, ConstBytes(sizes, sizeof(uint64_t) * locals));
  }
  stage.pack(own, node);
  if (bytes > 0) c.put(root, ConstBytes(node, bytes));
}

template <bool kSizesFirst>
Task run(Comm& c, Args a) {
  NodeStage stage(c, a.root, a.parameter);
  const ConstBytes own = a.own(c.rank());
  const bool is_root = c.rank() == a.root, is_gateway = c.rank() == stage.gateway();
  FromNode* from = nullptr;
  int expected = 0;
  stage.move_long(a, own);
  if (is_root) {
    const int nodes = c.placement().node_count();
    from = c.scratch_array<FromNode>(static_cast<size_t>(nodes));
    if (!from) co_return;
    std::fill_n(from, nodes, FromNode());
    for (int node = 0; node < nodes; ++node)
      if (node != stage.root_node())
        expected += kSizesFirst ? announce_sizes(c, from[node], node) : announce_blocks(c, stage, a, from[node], node);
  }
  const uint64_t written = stage.step_bytes(is_gateway ? 0 : own.size());
  co_await c.next_own_step(written);
  stage.write(own);
  c.publish();
  if (is_gateway) co_await c.all_published();
  if (is_root) {
    if (!stage.agrees(a.recv_to_read())) co_return;
    stage.place(a.recv);
    while (expected-- > 0) {
      const int node = c.placement().node_of(co_await c.next_landing());
      if (from[node].open)
        copy_out(from[node].landing, a.recv, [&](auto each) { stage.each_block(a.recv_to_read(), node, each); });
      else if (agrees(c, from[node], node, a))
        expected += announce_blocks(c, stage, a, from[node], node);
      else
        co_return;
    }
    co_await c.received();
  } else if (is_gateway) {
    send<kSizesFirst>(c, stage, own, a.root);
  }
  co_await c.flushed();
}

// The late rank sends for its node, or another rank does that waits for it.
double late_us(const Shape& s, const CostModel& m) {
  const double between = (s.nodes - 1.0) / s.nodes * model_of_late(m).message_us(node_bytes(s));
  return late_node_gather_us(s, m, between);
}

constexpr Algorithm row(ibcoll_collective_t collective, Task (*run)(Comm&, Args)) {
  return {.collective = collective,
          .name = "shm_linear",
          .about = "through the node window to a rank of each node, which sends straight to the root",
          .parameter = kThreshold,
          .run = run,
          .why_not = applies_to_several_nodes,
          .choose = choose_node_threshold,
          .cost_us = shm_linear_us,
          .late_us = late_us,
          .uses_window = true};
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {row(IBCOLL_GATHER, run<false>), row(IBCOLL_GATHERV, run<true>)};
  return kRows;
}

}  // namespace ibcoll::gather::shm_linear
