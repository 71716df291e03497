// SPDX-License-Identifier: BSD-3-Clause
// Gather(v), node-aware, for few nodes: the ranks of a node write their blocks to the node window; its speaker (the root
// on the root's node, else the leader) sends them straight to the root, in one message. Of gatherv the sizes go before:
// the root compares them with its list, and the leader waits for no answer. Blocks of more bytes than the threshold, or
// than an area of the window, go from their ranks to the root. For any placement.
// Source: the leaders of Qian, Afsahi; between nodes linear, of Thakur, Gropp.
// Cost, N nodes: a step of the window, 2 copies, alpha; N - 1 messages (gatherv: 2 (N - 1)) at the root.
#include "runtime/collectives/gather/node_stage.h"

namespace ibcoll::gather::shm_linear {

// What comes from another node. A coroutine of g++ 12 holds no type of an unnamed namespace.
struct Load {
  uint64_t* told = nullptr;      // sizes of its ranks
  bool open = false;             // the blocks are announced
  std::byte* landing = nullptr;  // nullptr: in place
};

namespace {

// At the root. Each of these is true when the node sends something more, and false also when the collective has failed.
bool announce_sizes(Comm& c, Load& load, int node) {
  const uint64_t bytes = sizeof(uint64_t) * c.placement().ranks_of(node).size();
  std::byte* const told = c.scratch(bytes);
  if (!told) return false;
  load.told = reinterpret_cast<uint64_t*>(told);
  c.announce(c.placement().leader_of(node), Bytes(told, bytes));
  c.watch(c.placement().leader_of(node));
  return true;
}

bool announce_blocks(Comm& c, const NodeStage& stage, const Args& a, Load& load, int node) {
  const ConstBlocks blocks = a.recv_to_read();
  const uint64_t bytes = stage.bytes_of(blocks, node);
  const auto each_stretch = [&](auto each) { stage.each_stretch(blocks, node, each); };
  load.open =
      bytes > 0 && announce_stretches(c, c.placement().leader_of(node), bytes, a.recv, each_stretch, &load.landing);
  return load.open;
}

// The sizes of a node have come. False: they are not those of the root's list, and the collective has failed.
bool agrees(Comm& c, const Load& load, int node, const Args& a) {
  const std::span<const int> ranks = c.placement().ranks_of(node);
  for (size_t i = 0; i < ranks.size(); ++i)
    if (load.told[i] != a.recv.size(ranks[i])) {
      c.mismatch(ranks[i], load.told[i], a.recv.size(ranks[i]), "bytes of its block");
      return false;
    }
  return true;
}

// At a leader, of what its ranks have published.
template <bool kTold>
void send(Comm& c, const NodeStage& stage, ConstBytes own, int root) {
  const size_t locals = stage.locals().size();
  const uint64_t bytes = stage.about().root_bytes;
  std::byte* const told = c.scratch(sizeof(uint64_t) * locals);
  std::byte* const node = c.scratch(bytes);
  if (!told || !node) return;
  if (kTold) {
    for (size_t l = 0; l < locals; ++l) reinterpret_cast<uint64_t*>(told)[l] = stage.size(static_cast<int>(l));
    c.put(root, ConstBytes(told, sizeof(uint64_t) * locals));
  }
  stage.pack(own, node);
  if (bytes > 0) c.put(root, ConstBytes(node, bytes));
}

template <bool kTold>
Task run(Comm& c, Args a) {
  NodeStage stage(c, a.root, a.parameter);
  const ConstBytes own = a.own(c.rank());
  const bool is_root = c.rank() == a.root, speaks = c.rank() == stage.speaker();
  Load* loads = nullptr;
  int coming = 0;
  stage.move_long(a, own);
  if (is_root) {
    const int nodes = c.placement().node_count();
    loads = c.scratch_array<Load>(static_cast<size_t>(nodes));
    if (!loads) co_return;
    std::fill_n(loads, nodes, Load());
    for (int node = 0; node < nodes; ++node)
      if (node != stage.root_node())
        coming += kTold ? announce_sizes(c, loads[node], node) : announce_blocks(c, stage, a, loads[node], node);
  }
  const uint64_t written = stage.step_bytes(speaks ? 0 : own.size());
  co_await c.next_own_step(written);
  stage.write(own);
  c.publish();
  if (speaks) co_await c.all_published();
  if (is_root) {
    if (!stage.agrees(a.recv_to_read())) co_return;
    stage.place(a.recv);
    while (coming-- > 0) {
      const int node = c.placement().node_of(co_await c.next_landing());
      if (loads[node].open)
        copy_out(loads[node].landing, a.recv, [&](auto each) { stage.each_block(a.recv_to_read(), node, each); });
      else if (agrees(c, loads[node], node, a))
        coming += announce_blocks(c, stage, a, loads[node], node);
      else
        co_return;
    }
    co_await c.received();
  } else if (speaks) {
    send<kTold>(c, stage, own, a.root);
  }
  co_await c.flushed();
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
          .uses_window = true};
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {row(IBCOLL_GATHER, run<false>), row(IBCOLL_GATHERV, run<true>)};
  return kRows;
}

}  // namespace ibcoll::gather::shm_linear
