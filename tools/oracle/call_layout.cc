// SPDX-License-Identifier: BSD-3-Clause
#include "tools/oracle/call_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "runtime/base/hash.h"
#include "tools/oracle/elements.h"

namespace ibcoll::oracle {
namespace {

// An address that must not be used.
template <typename T>
T* junk() {
  return reinterpret_cast<T*>(uintptr_t{4096 - 8});
}

}  // namespace

uint64_t CallParams::element_bytes() const {
  return type == IBCOLL_OPAQUE ? opaque_bytes : oracle::element_bytes(type);
}

uint64_t CallParams::block_bytes(int source, int destination) const {
  if (!row().irregular()) return row().reduces() ? count * element_bytes() : bytes;
  if (row().sizes == SizesKnown::kToPairs) {
    if (sizes) return sizes(source, destination);
    return counts[static_cast<size_t>(source) * static_cast<size_t>(p) + static_cast<size_t>(destination)];
  }
  const int rank = row().recv.extent == Extent::kBlocks ? source : destination;
  return sizes ? sizes(rank, 0) : counts[static_cast<size_t>(rank)];
}

ibcoll_collective_args_t CallParams::bare_args(int rank) const {
  ibcoll_collective_args_t args{};
  args.struct_size = sizeof args;
  args.collective = collective;
  args.scheme = scheme;
  args.algorithm = algorithm;
  args.root = root;
  args.type = type;
  args.op = op;
  args.count = count;
  args.element_bytes = opaque_bytes;
  args.bytes = row().sizes == SizesKnown::kToRoot ? block_bytes(rank, rank) : bytes;
  return args;
}

std::string CallParams::describe() const {
  const uint64_t total = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  return fmt::format("{} p={} bytes={} total={} count={} type={} op={} root={}{} scheme={}{}{}", row().name, p, bytes,
                     total, count, type_name(type), operation_name(op), root, in_place ? " in place" : "",
                     static_cast<int>(scheme), algorithm ? " algorithm=" : "", algorithm ? algorithm : "");
}

CallLayout::CallLayout(CallParams params, int rank) : params_(std::move(params)), rank_(rank) {
  const bool sends_from_recv =
      row().one_buffer || (in_place() && (row().reduces() || row().recv.extent == Extent::kBlocks));
  if (!sends_from_recv) lay_out(send_, row().send, true);
  const bool stays =
      in_place() && row().rooted && row().send.extent == Extent::kBlocks;  // scatter: nothing is received
  if (!stays) lay_out(recv_, result_in_operand() ? row().send : row().recv, result_in_operand());
}

void CallLayout::lay_out(BufferLayout& layout, const Buffer& buffer, bool sends) {
  layout.significant = buffer.extent != Extent::kNothing && (!buffer.at_root_only || rank_ == params_.root);
  if (!layout.significant) return;
  const int blocks = buffer.extent == Extent::kBlocks ? params_.p : 1;
  for (int i = 0; i < blocks; ++i) {
    const int index = buffer.extent == Extent::kBlocks ? i : rank_;
    const uint64_t bytes = sends ? params_.block_bytes(rank_, index) : params_.block_bytes(index, rank_);
    layout.blocks.push_back({0, bytes, index});
  }
  arrange(layout, &layout == &send_ ? 1 : 2);
}

// The blocks of reduce_scatter lie one after the other.
void CallLayout::arrange(BufferLayout& layout, uint64_t stream) const {
  const bool scattered = params_.gaps > 0 && row().irregular() && !row().reduces() && layout.blocks.size() > 1;
  uint64_t state = Digest().add(params_.seed).add(static_cast<uint64_t>(rank_)).add(stream).value();
  const auto below = [&](uint64_t n) { return (state = scramble(state + kGoldenRatio)) % n; };
  std::vector<size_t> order(layout.blocks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (scattered)
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[below(i)]);
  for (const size_t i : order) {
    if (scattered) layout.extent += below(params_.gaps + 1);
    layout.blocks[i].offset = layout.extent;
    layout.extent += layout.blocks[i].bytes;
  }
  for (const BufferLayout::Block& block : layout.blocks) {
    layout.counts.push_back(block.bytes);
    layout.displacements.push_back(block.offset);
  }
}

ibcoll_collective_args_t CallLayout::args(std::byte* send, std::byte* recv) const {
  ibcoll_collective_args_t args = params_.bare_args(rank_);
  const bool scatters = row().rooted && row().send.extent == Extent::kBlocks;
  args.send = in_place() && !scatters ? IBCOLL_IN_PLACE : send_.significant ? send : junk<std::byte>();
  args.recv = in_place() && scatters ? IBCOLL_IN_PLACE : recv_.significant ? recv : junk<std::byte>();
  if (!row().irregular()) return args;
  const auto arrays = [](const BufferLayout& layout, const uint64_t*& counts, const uint64_t*& displacements) {
    counts = layout.significant ? layout.counts.data() : junk<const uint64_t>();
    displacements = layout.significant ? layout.displacements.data() : junk<const uint64_t>();
  };
  arrays(send_, args.send_counts, args.send_displacements);
  arrays(recv_, args.recv_counts, args.recv_displacements);
  if (row().reduces()) args.recv_counts = (result_in_operand() ? recv_ : send_).counts.data();
  return args;
}

}  // namespace ibcoll::oracle
