// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_sim/calls.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/collectives/framework/arguments.h"

namespace ibcoll::simulator {
namespace {

constexpr uint64_t kMostAddresses = uint64_t{1} << 46;
constexpr uint64_t kMostMemory = uint64_t{4} << 30;
constexpr uint64_t kTooMany = ~uint64_t{0};

// Bytes of the largest such buffer of any rank; kTooMany: more than there are addresses.
uint64_t extent_of(const oracle::CallParams& params, const Buffer& buffer, bool sends) {
  if (buffer.extent == Extent::kNothing) return 0;
  const int p = params.p;
  uint64_t largest = 0;
  const auto note = [&](__uint128_t bytes) {
    largest = std::max(largest, bytes > kMostAddresses ? kTooMany : static_cast<uint64_t>(bytes));
  };
  const auto block = [&](int rank, int peer) {
    return sends ? params.block_bytes(rank, peer) : params.block_bytes(peer, rank);
  };
  if (!params.row().irregular()) {
    note(static_cast<__uint128_t>(block(0, 0)) * static_cast<unsigned>(buffer.extent == Extent::kBlocks ? p : 1));
    return largest;
  }
  const bool differ = params.row().sizes == SizesKnown::kToPairs;
  for (int rank = 0; rank < p; ++rank) {
    if (buffer.extent == Extent::kBlock) note(block(rank, rank));
    if (buffer.extent == Extent::kBlock || (rank > 0 && !differ)) continue;
    __uint128_t sum = 0;
    for (int peer = 0; peer < p; ++peer) sum += block(rank, peer);
    note(sum);
  }
  return largest;
}

uint64_t send_extent(const oracle::CallParams& params) {
  return params.row().one_buffer ? 0 : extent_of(params, params.row().send, true);
}
uint64_t recv_extent(const oracle::CallParams& params) { return extent_of(params, params.row().recv, false); }

}  // namespace

Addresses::Addresses(uint64_t bytes) {
  if (bytes == 0) return;
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    status_ =
        error(IBCOLL_ERR_NO_MEMORY, "no {} bytes of addresses: {}; use smaller blocks", bytes, std::strerror(errno));
  else
    all_ = {static_cast<std::byte*>(memory), bytes};
}

Addresses::~Addresses() {
  if (!all_.empty()) munmap(all_.data(), all_.size());
}

Status Calls::possible(const oracle::CallParams& params, bool with_bytes) {
  const uint64_t send = send_extent(params), recv = recv_extent(params);
  if (send == kTooMany || recv == kTooMany)
    return error(IBCOLL_ERR_INVALID_ARGUMENT,
                 "the blocks of {} ranks are more than {} TB in one buffer; use fewer ranks or smaller blocks",
                 params.p, kMostAddresses >> 40);
  if (!with_bytes) return {};
  const auto holders = [&](const Buffer& buffer) { return buffer.at_root_only ? 1.0 : params.p; };
  const double bytes =
      static_cast<double>(send) * holders(params.row().send) + static_cast<double>(recv) * holders(params.row().recv);
  if (bytes <= static_cast<double>(kMostMemory)) return {};
  return error(IBCOLL_ERR_INVALID_ARGUMENT,
               "--check holds the buffers of all ranks, {:.1f} GB here and at most {} GB; use fewer ranks or smaller "
               "blocks",
               bytes / (1 << 30), kMostMemory >> 30);
}

uint64_t Calls::list_bytes(const oracle::CallParams& params) {
  const auto p = static_cast<uint64_t>(params.p);
  const uint64_t list = 2 * sizeof(uint64_t) * p;  // counts and displacements
  return params.row().sizes == SizesKnown::kToPairs ? 2 * p * list : params.row().irregular() ? list : 0;
}

BlockList known_blocks(const oracle::CallParams& params) {
  BlockList known;
  const SizesKnown sizes = params.row().sizes;
  if (sizes == SizesKnown::kToAll || sizes == SizesKnown::kToRoot)
    for (int rank = 0; rank < params.p; ++rank) known.add(params.block_bytes(rank, rank));
  return known;
}

PairLists pair_lists(const oracle::CallParams& params, int rank) {
  PairLists lists;
  if (params.row().sizes != SizesKnown::kToPairs) return lists;
  for (int peer = 0; peer < params.p; ++peer) {
    lists.sends.add(params.block_bytes(rank, peer));
    lists.receives.add(params.block_bytes(peer, rank));
  }
  return lists;
}

Extents extents_of(const oracle::CallParams& params) { return {send_extent(params), recv_extent(params)}; }

Result<Args> args_at(const oracle::CallParams& params, int rank, std::byte* send, std::byte* recv,
                     const BlockList& known, const PairLists& pairs) {
  const Collective& row = params.row();
  ibcoll_collective_args_t given = params.bare_args(rank);
  given.send = send, given.recv = recv;
  const bool of_pairs = row.sizes == SizesKnown::kToPairs;
  const BlockList& sends = of_pairs ? pairs.sends : known;
  const BlockList& receives = of_pairs ? pairs.receives : known;
  if (row.irregular()) {
    given.send_counts = sends.counts.data(), given.send_displacements = sends.displacements.data();
    given.recv_counts = receives.counts.data(), given.recv_displacements = receives.displacements.data();
  }
  Result<Args> args = check_without_buffers(given, rank, params.p);
  if (args.ok() && row.irregular() && row.reduces()) args->send.displacements = known.displacements.data();
  return args;
}

Calls::Calls(oracle::CallParams params, bool with_bytes)
    : params_(std::move(params)),
      with_bytes_(with_bytes),
      addresses_(with_bytes ? 0 : send_extent(params_) + recv_extent(params_)),
      send_bytes_(with_bytes ? 0 : send_extent(params_)) {
  if (!with_bytes) {
    known_ = known_blocks(params_);
    return;
  }
  for (int rank = 0; rank < params_.p; ++rank) cases_.emplace_back(params_, rank);
}

Result<Args> Calls::args(int rank) {
  if (with_bytes_) return check_arguments(cases_[static_cast<size_t>(rank)].args(), rank, params_.p);
  of_pairs_.push_back(pair_lists(params_, rank));
  std::byte* const send = addresses_.all().data();
  return args_at(params_, rank, send, send + send_bytes_, known_, of_pairs_.back());
}

}  // namespace ibcoll::simulator
