// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/collectives/framework/arguments.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

namespace ibcoll {
namespace {

// A block of caller memory, for the overlap check.
struct Extent {
  const std::byte* start;
  const std::byte* end;
  const char* buffer;  // "send" or "recv"
  int block;
};

class Check {
 public:
  Check(const ibcoll_collective_args_t& given, int rank, int size, bool buffers)
      : given_(given), rank_(rank), size_(size), buffers_(buffers) {
    args_.collective = given.collective;
    args_.in_place = given.send == IBCOLL_IN_PLACE;
    args_.send.base = args_.in_place ? nullptr : static_cast<const std::byte*>(given.send);
    args_.recv.base = static_cast<std::byte*>(given.recv);
  }

  Result<Args> run() {
    switch (given_.collective) {
      case IBCOLL_BARRIER:
        break;
      case IBCOLL_BCAST:
        bcast();
        break;
      case IBCOLL_ALLGATHER:
        args_.recv.bytes = given_.bytes;
        regular("recv", args_.recv.base, given_.bytes);
        own_block(given_.bytes);
        break;
      case IBCOLL_ALLGATHERV:
        args_.recv.counts = given_.recv_counts;
        args_.recv.displacements = given_.recv_displacements;
        irregular("recv", args_.recv);
        if (status_.ok()) own_block(args_.recv.size(rank_));
        break;
      case IBCOLL_ALLTOALL:
        args_.recv.bytes = args_.send.bytes = given_.bytes;
        regular("recv", args_.recv.base, given_.bytes);
        if (!args_.in_place) regular("send", args_.send.base, given_.bytes);
        break;
      case IBCOLL_ALLTOALLV:
        alltoallv();
        break;
      case IBCOLL_ALLREDUCE:
        allreduce();
        break;
      default:
        fail("collective is {}, which is none of ibcoll_collective_t", static_cast<int>(given_.collective));
    }
    if (given_.scheme < IBCOLL_SCHEME_AUTO || given_.scheme > IBCOLL_SCHEME_ZERO_COPY)
      fail("scheme is {}, which is none of ibcoll_scheme_t", static_cast<int>(given_.scheme));
    if (status_.ok()) disjoint();
    if (!status_.ok()) return status_;
    return args_;
  }

 private:
  template <typename... Values>
  void fail(fmt::format_string<Values...> format, Values&&... values) {
    if (!status_.ok()) return;
    const char* const name = ibcoll_collective_name(given_.collective);
    status_ = error(IBCOLL_ERR_INVALID_ARGUMENT, "rank {}: {}: {}", rank_, name ? name : "collective",
                    fmt::format(format, std::forward<Values>(values)...));
  }

  void extent(const char* buffer, int block, const std::byte* base, uint64_t offset, uint64_t bytes) {
    if (bytes == 0 || !buffers_ || !status_.ok()) return;
    uint64_t end = 0;
    if (!base)
      fail("{} is NULL, but block {} has {} bytes", buffer, block, bytes);
    else if (__builtin_add_overflow(offset, bytes, &end) ||
             __builtin_add_overflow(reinterpret_cast<uint64_t>(base), end, &end))
      fail("{} block {} of {} bytes at displacement {} does not fit into the address space", buffer, block, bytes,
           offset);
    else
      extents_.push_back({base + offset, base + offset + bytes, buffer, block});
  }

  void regular(const char* buffer, const std::byte* base, uint64_t bytes) {
    uint64_t total = 0;
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(size_), &total))
      fail("{} blocks of {} bytes overflow 64 bits", size_, bytes);
    else
      extent(buffer, 0, base, 0, total);
  }

  template <typename Byte>
  void irregular(const char* buffer, BasicBlocks<Byte>& blocks) {
    if (!buffers_) {
      if (!blocks.counts) regular(buffer, blocks.base, blocks.bytes = given_.bytes);
      return;
    }
    if (!blocks.counts || !blocks.displacements) {
      fail("{}_{} is NULL", buffer, blocks.counts ? "displacements" : "counts");
      return;
    }
    for (int i = 0; i < size_; ++i) extent(buffer, i, blocks.base, blocks.displacements[i], blocks.counts[i]);
  }

  void own_block(uint64_t bytes) {
    if (!args_.in_place) extent("send", rank_, args_.send.base, 0, bytes);
  }

  void bcast() {
    args_.bytes = given_.bytes;
    args_.in_place = false;
    args_.root = given_.root;
    if (given_.root < 0 || given_.root >= size_) fail("root is {}, the team has ranks 0 to {}", given_.root, size_ - 1);
    extent("recv (the buffer)", 0, args_.recv.base, 0, given_.bytes);
  }

  void alltoallv() {
    args_.recv.counts = given_.recv_counts;
    args_.recv.displacements = given_.recv_displacements;
    irregular("recv", args_.recv);
    if (args_.in_place) return;
    args_.send.counts = given_.send_counts;
    args_.send.displacements = given_.send_displacements;
    irregular("send", args_.send);
    if (!args_.send.counts || !args_.recv.counts) return;
    if (status_.ok() && args_.send.counts[rank_] != args_.recv.counts[rank_])
      fail("this rank sends {} bytes to itself but receives {}", args_.send.counts[rank_], args_.recv.counts[rank_]);
  }

  void allreduce() {
    const uint64_t element = type_bytes(given_.type);
    args_.count = given_.count;
    if (element == 0) {
      fail("type is {}, which is none of ibcoll_type_t", static_cast<int>(given_.type));
      return;
    }
    if (!given_.op) {
      fail("op is NULL");
      return;
    }
    args_.reduction = {given_.op, given_.type, reduce_kernel(given_.op, given_.type)};
    if (given_.op->index >= 0 && !args_.reduction.kernel)
      fail("operation {} is not defined for {}", given_.op->name, type_name(given_.type));
    if (__builtin_mul_overflow(given_.count, element, &args_.bytes))
      fail("{} elements of {} bytes overflow 64 bits", given_.count, element);
    extent("recv", 0, args_.recv.base, 0, args_.bytes);
    own_block(args_.bytes);
  }

  // What is written must not be read or written by another block.
  void disjoint() {
    std::sort(extents_.begin(), extents_.end(), [](const Extent& a, const Extent& b) { return a.start < b.start; });
    const Extent* reaches[2] = {nullptr, nullptr};  // of the recv and of the send blocks so far: the one that ends last
    for (const Extent& e : extents_) {
      const int kind = e.buffer[0] == 's';
      for (const int other : {0, 1}) {
        const Extent* const before = reaches[other];
        if (before && before->end > e.start && !(kind == 1 && other == 1)) {
          fail("{} block {} and {} block {} overlap", before->buffer, before->block, e.buffer, e.block);
          return;
        }
      }
      if (!reaches[kind] || e.end > reaches[kind]->end) reaches[kind] = &e;
    }
  }

  const ibcoll_collective_args_t& given_;
  int rank_;
  int size_;
  bool buffers_;  // false: they, and where blocks lie, are not looked at
  Args args_;
  Status status_;
  std::vector<Extent> extents_;
};

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 29;
}

Result<Args> check(const ibcoll_collective_args_t& given, int rank, int size, bool buffers) {
  if (given.struct_size < sizeof given)  // then not all of it may be read
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_collective_args_t.struct_size is {}: set it to sizeof, {} bytes",
                 given.struct_size, sizeof given);
  return Check(given, rank, size, buffers).run();
}

}  // namespace

Result<Args> check_arguments(const ibcoll_collective_args_t& given, int rank, int size) {
  return check(given, rank, size, true);
}

Result<Args> check_without_buffers(const ibcoll_collective_args_t& given, int rank, int size) {
  return check(given, rank, size, false);
}

uint32_t call_signature(const Args& args, const char* algorithm, ibcoll_scheme_t scheme, int size) {
  uint64_t hash = mix(1, static_cast<uint64_t>(args.collective));
  for (const char c : std::string_view(algorithm)) hash = mix(hash, static_cast<unsigned char>(c));
  for (const uint64_t value : {static_cast<uint64_t>(scheme), static_cast<uint64_t>(args.root), args.bytes, args.count,
                               args.recv.bytes, static_cast<uint64_t>(args.reduction.type),
                               static_cast<uint64_t>(args.reduction.op ? args.reduction.op->index : 0)})
    hash = mix(hash, value);
  if (args.collective == IBCOLL_ALLGATHERV)
    for (int i = 0; i < size; ++i) hash = mix(hash, args.recv.counts[i]);
  return static_cast<uint32_t>(hash ^ hash >> 32);
}

}  // namespace ibcoll
