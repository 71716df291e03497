// SPDX-License-Identifier: BSD-3-Clause
// Scatter(v), node-aware, for few nodes: the mirror image of gather/shm_linear.cc. The root sends each node's blocks to
// its leader in one message, in scatterv after one with the sizes; the leader writes both to the node window, and each
// rank compares the size with its own. The root waits for no rank. Blocks of more bytes than the threshold, or than an
// area of the window, come straight from the root. For any placement.
// Source: the leaders of Qian, Afsahi; between nodes linear, of Thakur, Gropp.
// Cost, N nodes: a step of the window, 2 copies, alpha; N - 1 messages (scatterv: 2 (N - 1)) at the root.
#include "runtime/collectives/gather/node_stage.h"
#include "runtime/collectives/scatter/scatter.h"

namespace ibcoll::scatter::shm_linear {
namespace {

using gather::NodeStage;

// At the root. False: the collective has failed.
template <bool kSizesFirst>
bool send_blocks(Comm& c, const NodeStage& stage, const Args& a) {
  const Placement& nodes = c.placement();
  for (int i = 1; i < nodes.node_count(); ++i) {
    const int node = (stage.root_node() + i) % nodes.node_count(), leader = nodes.leader_of(node);
    const std::span<const int> ranks = nodes.ranks_of(node);
    if (kSizesFirst) {
      auto* const list = c.scratch_array<uint64_t>(ranks.size());
      if (!list) return false;
      for (size_t l = 0; l < ranks.size(); ++l) list[l] = a.send.size(ranks[l]);
      c.put(leader, ConstBytes(reinterpret_cast<std::byte*>(list), sizeof(uint64_t) * ranks.size()));
    }
    const uint64_t bytes = stage.bytes_of(a.send, node);
    if (bytes > 0 &&
        !put_stretches(c, leader, bytes, a.send, [&](auto each) { stage.each_stretch(a.send, node, each); }))
      return false;
  }
  return true;
}

// At a leader: the sizes of its ranks, which the root sends first.
Task receive_sizes(Comm& c, int root, uint64_t* sizes, size_t locals) {
  c.announce(root, Bytes(reinterpret_cast<std::byte*>(sizes), sizeof(uint64_t) * locals));
  co_await c.received_from(root);
}

template <bool kSizesFirst>
Task run(Comm& c, Args a) {
  NodeStage stage(c, a.root, a.parameter);
  NodeWindow& w = c.node();
  const bool is_root = c.rank() == a.root, is_gateway = c.rank() == stage.gateway(), leads = is_gateway && !is_root;
  const size_t locals = stage.locals().size();
  auto* const sizes = c.scratch_array<uint64_t>(locals);
  if (!sizes) co_return;
  std::fill_n(sizes, locals, a.bytes);
  if (is_root) {
    if (!send_blocks<kSizesFirst>(c, stage, a)) co_return;
    for (size_t l = 0; l < locals; ++l) sizes[l] = a.send.size(stage.locals()[l]);
    if (!a.in_place) c.copy_when_idle(a.buffer(), a.send[a.root]);
  }
  const std::byte* node = nullptr;
  if (leads) {
    if (kSizesFirst) co_await receive_sizes(c, a.root, sizes, locals);
    if (sizes[w.rank()] != a.bytes) {
      c.mismatch(a.root, sizes[w.rank()], a.bytes, "bytes of its block");
      co_return;
    }
    uint64_t bytes = 0;
    for (size_t l = 0; l < locals; ++l) bytes += stage.fits(sizes[l]) ? sizes[l] : 0;
    std::byte* const landing = c.scratch(bytes);
    if (!landing) co_return;
    if (bytes > 0) c.announce(a.root, Bytes(landing, bytes));
    co_await c.received_from(a.root);
    node = landing;
  }
  // Long blocks: their messages come after those of the nodes.
  if (!is_root && a.bytes > stage.longest()) c.announce(a.root, a.buffer());
  for (int i = 1; is_root && i < c.size(); ++i)
    if (a.send.size(c.peer(i)) > stage.longest()) c.put(c.peer(i), a.send[c.peer(i)]);

  uint64_t writes = 0;
  if (is_gateway) writes = stage.longest_written([&](int local) { return sizes[local]; });
  co_await c.next_own_step(stage.step_bytes(writes));
  if (is_root) stage.place_others(a.send);
  if (leads) stage.unpack(sizes, node, a.buffer());
  c.publish();
  if (!is_gateway) {
    co_await c.published(stage.local_gateway());
    if (!stage.take(a.buffer())) co_return;
  }
  co_await c.received();
  co_await c.flushed();
}

double late_us(const Shape& s, const CostModel& m) {
  return gather::late_node_scatter_us(s, m, gather::shm_linear_us(s, m), 0);
}

constexpr Algorithm row(ibcoll_collective_t collective, Task (*run)(Comm&, Args)) {
  return {.collective = collective,
          .name = "shm_linear",
          .about = "straight from the root to a rank of each node, from there through the node window",
          .parameter = gather::kThreshold,
          .run = run,
          .why_not = gather::applies_to_several_nodes,
          .choose = gather::choose_node_threshold,
          .cost_us = gather::shm_linear_us,
          .late_us = late_us,
          .uses_window = true};
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {row(IBCOLL_SCATTER, run<false>), row(IBCOLL_SCATTERV, run<true>)};
  return kRows;
}

}  // namespace ibcoll::scatter::shm_linear
