// SPDX-License-Identifier: BSD-3-Clause
// The v-forms and alltoallw: a block per rank, each with a count, a displacement and, in alltoallw, a type of its own.
#include <algorithm>
#include <limits>

#include "runtime/under_mpi/core/builder.h"
#include "runtime/under_mpi/core/route.h"

namespace ibcoll::under_mpi {

// The blocks of a side, by rank.
struct Builder::Blocks {
  const Side& side;
  const Type* common = nullptr;  // NULL: types differ
  bool direct = true;            // each block is one run in memory
  int64_t lowest = 0;            // displacement of the first byte, where direct
  uint64_t bytes = 0;

  const Type* type(int rank) const noexcept { return common != nullptr ? common : find_type(side.types[rank]); }
  // From the buffer to the block's first element.
  int64_t displacement(int rank) const noexcept {
    return side.types != nullptr ? side.displacements[rank] : side.displacements[rank] * common->extent;
  }
};

// Counts in bytes; displacements in bytes where all blocks are runs, else those of the packed blocks.
Reason Builder::measure(const Side& side, BlockArrays& arrays, Blocks& blocks) {
  if (!side.counts.given() || !side.displacements.given()) return Reason::kBadArguments;
  if (side.types == nullptr && (blocks.common = find_type(side.type)) == nullptr) return Reason::kBadArguments;
  const auto size = static_cast<size_t>(size_);
  if (blocks.direct && blocks.common != nullptr && arrays.fit(side, *blocks.common, size)) {
    blocks.lowest = arrays.lowest;
    blocks.bytes = arrays.bytes;
    out_.bytes = std::max(out_.bytes, blocks.bytes);
    return Reason::kNone;
  }
  arrays.begin(size);
  std::vector<uint64_t>&counts = arrays.counts, &displacements = arrays.displacements;
  int64_t lowest = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < size_; ++i) {
    const int64_t count = side.counts[i];
    const Type* type = blocks.type(i);
    if (count < 0 || type == nullptr) return Reason::kBadArguments;
    counts[i] = static_cast<uint64_t>(count * type->size);
    blocks.bytes += counts[i];
    if (counts[i] == 0) continue;
    blocks.direct = blocks.direct && type->dense(count);
    lowest = std::min(lowest, blocks.displacement(i) + type->true_lb);
  }
  blocks.lowest = blocks.bytes > 0 ? lowest : 0;
  uint64_t packed = 0;
  for (int i = 0; i < size_; ++i) {
    if (counts[i] == 0) continue;
    displacements[i] = blocks.direct
                           ? static_cast<uint64_t>(blocks.displacement(i) + blocks.type(i)->true_lb - blocks.lowest)
                           : packed;
    packed += counts[i];
  }
  out_.bytes = std::max(out_.bytes, blocks.bytes);
  arrays.lowest = blocks.lowest;
  arrays.bytes = blocks.bytes;
  if (blocks.direct && blocks.common != nullptr) arrays.remember(side, *blocks.common, size);
  return Reason::kNone;
}

Reason Builder::send_blocks(const Side& side) {
  Blocks blocks{side};
  BlockArrays& arrays = out_.arrays->send;
  if (aliased()) blocks.direct = false;
  const Reason reason = measure(side, arrays, blocks);
  if (reason != Reason::kNone) return reason;
  args_.send_counts = arrays.counts.data();
  args_.send_displacements = arrays.displacements.data();
  if (blocks.direct) {
    args_.send = at(side.buffer, blocks.lowest);
    return Reason::kNone;
  }
  char* stage = out_.send_stage.reserve(blocks.bytes);
  for (int i = 0; i < size_; ++i) {
    if (arrays.counts[i] == 0) continue;
    pack(at(side.buffer, blocks.displacement(i)), side.counts[i], *blocks.type(i), stage + arrays.displacements[i]);
  }
  args_.send = stage;
  return Reason::kNone;
}

Reason Builder::receive_blocks(const Side& side, InPlace in_place) {
  Blocks blocks{side};
  BlockArrays& arrays = out_.arrays->recv;
  const Reason reason = measure(side, arrays, blocks);
  if (reason != Reason::kNone) return reason;
  args_.recv_counts = arrays.counts.data();
  args_.recv_displacements = arrays.displacements.data();
  if (blocks.direct) {
    args_.recv = at(side.buffer, blocks.lowest);
    return Reason::kNone;
  }
  char* stage = out_.recv_stage.reserve(blocks.bytes);
  for (int i = 0; i < size_; ++i) {
    if (arrays.counts[i] == 0) continue;
    char* packed = stage + arrays.displacements[i];
    char* buffer = at(side.buffer, blocks.displacement(i));
    const Type& type = *blocks.type(i);
    if (in_place == InPlace::kAllBlocks || (in_place == InPlace::kOwnBlock && i == rank_)) {
      pack(buffer, side.counts[i], type, packed);
    }
    out_.unpacked.push_back({packed, buffer, side.counts[i], &type});
  }
  args_.recv = stage;
  return Reason::kNone;
}

Reason Builder::allgatherv() {
  const Reason reason = receive_blocks(call_.recv, in_place() ? InPlace::kOwnBlock : InPlace::kNo);
  if (reason != Reason::kNone) return reason;
  if (refused_alias()) return Reason::kBadArguments;
  if (in_place()) {
    args_.send = IBCOLL_IN_PLACE;
    return Reason::kNone;
  }
  const Type* sent = checked(call_.send);
  if (sent == nullptr) return Reason::kBadArguments;
  if (static_cast<uint64_t>(call_.send.count * sent->size) != args_.recv_counts[rank_]) return build_around_own_block();
  send_run(call_.send.buffer, call_.send.count, *sent);
  return Reason::kNone;
}

Reason Builder::alltoallv() {
  const Reason reason = receive_blocks(call_.recv, in_place() ? InPlace::kAllBlocks : InPlace::kNo);
  if (reason != Reason::kNone) return reason;
  if (refused_alias()) return Reason::kBadArguments;
  if (in_place()) {
    args_.send = IBCOLL_IN_PLACE;
    return Reason::kNone;
  }
  if (const Reason sent = send_blocks(call_.send); sent != Reason::kNone) return sent;
  if (args_.send_counts[rank_] != args_.recv_counts[rank_]) leave_out_own_block();
  return Reason::kNone;
}

Reason Builder::gatherv() {
  if (!root_is_valid() || (in_place() && !is_root())) return Reason::kBadArguments;
  args_.root = call_.root;
  if (is_root()) {
    const Reason reason = receive_blocks(call_.recv, in_place() ? InPlace::kOwnBlock : InPlace::kNo);
    if (reason != Reason::kNone) return reason;
    if (refused_alias()) return Reason::kBadArguments;
  }
  if (in_place()) {
    args_.send = IBCOLL_IN_PLACE;
    args_.bytes = args_.recv_counts[rank_];
    return Reason::kNone;
  }
  const Type* sent = checked(call_.send);
  if (sent == nullptr) return Reason::kBadArguments;
  args_.bytes = static_cast<uint64_t>(call_.send.count * sent->size);
  if (is_root() && args_.bytes != args_.recv_counts[rank_]) return build_around_own_block();
  out_.bytes = std::max(out_.bytes, args_.bytes);
  send_run(call_.send.buffer, call_.send.count, *sent);
  return Reason::kNone;
}

Reason Builder::scatterv() {
  if (!root_is_valid()) return Reason::kBadArguments;
  args_.root = call_.root;
  if (is_root()) {
    const Reason reason = send_blocks(call_.send);
    if (reason != Reason::kNone) return reason;
    if (refused_alias()) return Reason::kBadArguments;
  }
  if (call_.recv.buffer == MPI_IN_PLACE || out_.own_moved) {
    if (!is_root()) return Reason::kBadArguments;
    args_.recv = IBCOLL_IN_PLACE;
    args_.bytes = args_.send_counts[rank_];
    return Reason::kNone;
  }
  const Type* type = checked(call_.recv);
  if (type == nullptr) return Reason::kBadArguments;
  args_.bytes = static_cast<uint64_t>(call_.recv.count * type->size);
  if (is_root() && args_.bytes != args_.send_counts[rank_]) return build_around_own_block();
  out_.bytes = std::max(out_.bytes, args_.bytes);
  receive_run(const_cast<void*>(call_.recv.buffer), call_.recv.count, *type, {});
  return Reason::kNone;
}

}  // namespace ibcoll::under_mpi
