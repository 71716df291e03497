// SPDX-License-Identifier: BSD-3-Clause
// A rank that sends itself another number of bytes than it offers. That is an error, but MPIs take it where it sends
// fewer: the other ranks need not know, so this rank moves its own block alone, and ibcoll moves all others.
#include <algorithm>

#include "runtime/under_mpi/core/builder.h"
#include "runtime/under_mpi/core/route.h"

namespace ibcoll::under_mpi {
namespace {

// Elements of a side, from a displacement in extents, or in bytes for alltoallw.
Elements block_of(const Side& side, int rank) {
  const Type* const type = find_type(side.types != nullptr ? side.types[rank] : side.type);
  const int64_t at_element = side.displacements[rank] * (side.types != nullptr ? 1 : type->extent);
  return {at(side.buffer, at_element), side.counts[rank], type};
}

Elements block_of(const Side& side, int64_t index) {
  const Type* const type = find_type(side.type);
  return {at(side.buffer, index * side.count * type->extent), side.count, type};
}

}  // namespace

void Builder::move(Elements sent, Elements offered) {
  out_.own_sent = sent.bytes();
  out_.own_offered = offered.bytes();
  if (sent.bytes() == 0 || offered.bytes() == 0) return;
  Stage packed;
  char* const bytes = packed.reserve(sent.bytes());
  pack(sent.buffer, sent.count, *sent.type, bytes);
  const auto fits = static_cast<int64_t>(std::min(sent.bytes(), offered.bytes()));
  unpack(bytes, const_cast<void*>(offered.buffer), fits / offered.type->size, *offered.type);
}

// For ibcoll the block is in place. The MPI refuses equal buffers before it looks at sizes.
Reason Builder::build_around_own_block() {
  if (route().refuses_aliases && aliased()) return Reason::kBadArguments;
  const Side &send = call_.send, &recv = call_.recv;
  switch (call_.collective) {
    case Collective::kGather:
    case Collective::kAllgather:
      move(block_of(send, int64_t{0}), block_of(recv, int64_t{rank_}));
      break;
    case Collective::kGatherv:
    case Collective::kAllgatherv:
      move(block_of(send, int64_t{0}), block_of(recv, rank_));
      break;
    case Collective::kScatter:
      move(block_of(send, int64_t{rank_}), block_of(recv, int64_t{0}));
      break;
    default:  // scatterv
      move(block_of(send, rank_), block_of(recv, int64_t{0}));
  }
  out_.own_moved = true;
  out_.unpacked.clear();
  return build();
}

// alltoallv and alltoallw, once both sides are measured.
void Builder::leave_out_own_block() {
  move(block_of(call_.send, rank_), block_of(call_.recv, rank_));
  out_.own_moved = true;
  for (BlockArrays* const arrays : {&out_.arrays->send, &out_.arrays->recv}) {
    arrays->counts[static_cast<size_t>(rank_)] = 0;
    arrays->forget();
  }
  const auto is_own = [&](const Unpacked& one) { return one.buffer == block_of(call_.recv, rank_).buffer; };
  std::erase_if(out_.unpacked, is_own);
}

// alltoall: where all ranks send blocks of the same size, and all offer blocks of the same size, ibcoll moves what is
// both sent and offered.
Reason Builder::blocks_of_two_sizes(const Type& sent, const Type& offered) {
  if (route().refuses_aliases && aliased()) return Reason::kBadArguments;
  const Side &send = call_.send, &recv = call_.recv;
  const auto from = static_cast<uint64_t>(send.count * sent.size);
  const auto to = static_cast<uint64_t>(recv.count * offered.size);
  const uint64_t block = std::min(from, to);
  out_.own_sent = from;
  out_.own_offered = to;
  out_.own_moved = true;
  args_.bytes = block;
  out_.bytes = block * static_cast<uint64_t>(size_);
  char* const packed = out_.send_stage.reserve(from * static_cast<uint64_t>(size_) + 1);
  pack(send.buffer, send.count * size_, sent, packed);
  char* const landing = out_.recv_stage.reserve(out_.bytes + 1);
  for (int i = 0; i < size_; ++i) {
    const auto index = static_cast<uint64_t>(i);
    std::copy_n(packed + index * from, block, packed + index * block);
    const Elements of_rank = block_of(recv, int64_t{i});
    if (block > 0)
      out_.unpacked.push_back({landing + index * block, const_cast<void*>(of_rank.buffer),
                               static_cast<int64_t>(block) / offered.size, &offered});
  }
  args_.send = packed;
  args_.recv = landing;
  return Reason::kNone;
}

}  // namespace ibcoll::under_mpi
