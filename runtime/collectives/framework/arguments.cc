// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/collectives/framework/arguments.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/base/hash.h"

namespace ibcoll {
namespace {

// A block of caller memory, for the overlap check.
struct Stretch {
  const std::byte* start;
  const std::byte* end;
  const char* buffer;  // "send" or "recv"
  int block;
};

class Check {
 public:
  Check(const ibcoll_collective_args_t& given, int rank, int size, bool buffers, Overlap overlap)
      : given_(given),
        row_(find_collective(given.collective)),
        rank_(rank),
        size_(size),
        buffers_(buffers),
        overlap_(overlap) {
    args_.collective = given.collective;
  }

  Result<Args> run(Reaches* reaches) {
    if (!row_) fail("collective is {}, which is none of ibcoll_collective_t", static_cast<int>(given_.collective));
    if (row_ && row_->rooted) root();
    if (status_.ok() && row_->reduces()) reduction();
    if (status_.ok()) sizes();
    if (status_.ok()) blocks();
    if (given_.scheme < IBCOLL_SCHEME_AUTO || given_.scheme > IBCOLL_SCHEME_ZERO_COPY)
      fail("scheme is {}, which is none of ibcoll_scheme_t", static_cast<int>(given_.scheme));
    if (status_.ok() && may_overlap()) disjoint();
    if (!status_.ok()) return status_;
    if (reaches) *reaches = {reach(hulls_[1], given_.send), reach(hulls_[0], given_.recv)};
    return args_;
  }

 private:
  template <typename... Values>
  void fail(fmt::format_string<Values...> format, Values&&... values) {
    if (!status_.ok()) return;
    status_ = error(IBCOLL_ERR_INVALID_ARGUMENT, "rank {}: {}: {}", rank_, row_ ? row_->name : "collective",
                    fmt::format(format, std::forward<Values>(values)...));
  }

  bool significant(const Buffer& buffer) const {
    return buffer.extent != Extent::kNothing && (!buffer.at_root_only || rank_ == given_.root);
  }

  void root() {
    args_.root = given_.root;
    if (given_.root < 0 || given_.root >= size_) fail("root is {}, the team has ranks 0 to {}", given_.root, size_ - 1);
  }

  void reduction() {
    if (!is_type(given_.type)) return fail("type is {}, which is none of ibcoll_type_t", static_cast<int>(given_.type));
    if (!given_.op) return fail("op is NULL");
    const uint64_t fixed = type_bytes(given_.type);  // 0: the caller says how long an element is
    args_.reduction = {given_.op, given_.type, given_.element_bytes, given_.op_call};
    if (fixed == 0 && given_.element_bytes == 0)
      fail("element_bytes is 0: elements of type {} need a size", type_name(given_.type));
    else if (fixed > 0 && given_.element_bytes > 0 && given_.element_bytes != fixed)
      fail("element_bytes is {}, but type {} has {}: only IBCOLL_OPAQUE takes another size", given_.element_bytes,
           type_name(given_.type), fixed);
    else if (!args_.reduction.defined())
      fail("operation {} is not defined for {}, which has {}", given_.op->name, type_name(given_.type),
           operations_of(given_.type));
  }

  // Sets the sizes of the two buffers. Irregular sizes are looked at in blocks().
  void sizes() {
    args_.bytes = given_.bytes;
    if (row_->reduces() && !row_->irregular()) {
      args_.count = given_.count;
      if (__builtin_mul_overflow(given_.count, args_.reduction.element_bytes(), &args_.bytes))
        fail("{} elements of {} bytes overflow 64 bits", given_.count, args_.reduction.element_bytes());
    }
    if (!row_->irregular()) {
      if (row_->send.extent == Extent::kBlocks) args_.send.bytes = args_.bytes;
      if (row_->recv.extent == Extent::kBlocks) args_.recv.bytes = args_.bytes;
    }
    const bool scatters = row_->scatters();
    const void* const in_place = scatters ? given_.recv : given_.send;
    args_.in_place = row_->may_be_in_place(rank_, given_.root) && in_place == IBCOLL_IN_PLACE;
    if (significant(row_->recv)) args_.recv.base = static_cast<std::byte*>(given_.recv);
    if (significant(row_->send) && !row_->one_buffer) args_.send.base = static_cast<const std::byte*>(given_.send);
    in_place_elsewhere("recv", args_.recv.base, args_.in_place && scatters);
    in_place_elsewhere("send", args_.send.base, args_.in_place && !scatters);
    if (!args_.in_place) return;
    if (scatters)
      args_.recv.base = nullptr;
    else if (row_->reduces())
      args_.send.base = args_.recv.base;
    else
      args_.send.base = nullptr;
  }

  void in_place_elsewhere(const char* buffer, const void* base, bool taken) {
    if (base != IBCOLL_IN_PLACE || taken) return;
    if (row_->one_buffer)
      fail("{} is IBCOLL_IN_PLACE, which {} takes nowhere", buffer, row_->name);
    else if (row_->rooted)
      fail("{} is IBCOLL_IN_PLACE, which {} takes as {} at the root only (rank {})", buffer, row_->name,
           row_->scatters() ? "recv" : "send", given_.root);
    else
      fail("{} is IBCOLL_IN_PLACE, which {} takes as send only", buffer, row_->name);
  }

  void blocks() {
    if (significant(row_->recv) && row_->recv.extent == Extent::kBlocks)
      p_blocks("recv", args_.recv, given_.recv_counts, given_.recv_displacements);
    if (significant(row_->send) && row_->send.extent == Extent::kBlocks) {
      if (row_->reduces() && row_->irregular())
        vectors(given_.recv_counts);
      else if (!args_.in_place || row_->rooted)
        p_blocks("send", args_.send, given_.send_counts, given_.send_displacements);
    }
    if (!status_.ok()) return;
    own_size();
    const char* const recv = row_->one_buffer ? "recv (the buffer)" : "recv";
    if (significant(row_->recv) && row_->recv.extent == Extent::kBlock && !(args_.in_place && args_.send.base))
      extent(recv, rank_, args_.recv.base, 0, args_.bytes);
    if (row_->reduces() && args_.in_place && row_->send.extent == Extent::kBlock)
      extent("recv", rank_, args_.recv.base, 0, args_.bytes);
    if (significant(row_->send) && row_->send.extent == Extent::kBlock && !args_.in_place && !row_->one_buffer)
      extent("send", rank_, args_.send.base, 0, args_.bytes);
  }

  // This rank's one block, where sizes are irregular: all know it, or `bytes` says it and the root's list must agree.
  void own_size() {
    if (row_->sizes == SizesKnown::kToPairs) {
      if (!args_.in_place && args_.send.size(rank_) != args_.recv.size(rank_))
        fail("this rank sends {} bytes to itself but receives {}", args_.send.size(rank_), args_.recv.size(rank_));
      return;
    }
    const bool gathers = row_->recv.extent == Extent::kBlocks;
    const uint64_t* const counts = gathers ? args_.recv.counts : args_.send.counts;
    if (!row_->irregular() || !counts) return;
    if (row_->sizes == SizesKnown::kToRoot && !args_.in_place && args_.bytes != counts[rank_])
      return fail("bytes is {}, but the root's list says {} for its own block", args_.bytes, counts[rank_]);
    args_.bytes = counts[rank_];
    if (row_->reduces()) args_.count = args_.bytes / args_.reduction.element_bytes();
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
      add({base + offset, base + offset + bytes, buffer, block});
  }

  void add(const Stretch& block) {
    Hull& hull = hulls_[is_send(block)];
    hull.in_order = hull.in_order && block.start >= hull.end;
    hull.start = hull.end ? std::min(hull.start, block.start) : block.start;
    hull.end = std::max(hull.end, block.end);
    if (list_) extents_.push_back(block);
  }

  template <typename Byte>
  void p_blocks(const char* buffer, BasicBlocks<Byte>& blocks, const uint64_t* counts, const uint64_t* displacements) {
    if (row_->irregular()) {
      blocks.counts = counts;
      blocks.displacements = displacements;
      if (buffers_ || counts) return irregular(buffer, blocks);
      blocks.bytes = given_.bytes;  // without buffers, where no counts are given
    }
    uint64_t total = 0;
    if (__builtin_mul_overflow(blocks.bytes, static_cast<uint64_t>(size_), &total))
      fail("{} blocks of {} bytes overflow 64 bits", size_, blocks.bytes);
    else
      extent(buffer, 0, blocks.base, 0, total);
  }

  template <typename Byte>
  void irregular(const char* buffer, BasicBlocks<Byte>& blocks) {
    if (!buffers_) return;
    if (!blocks.counts || !blocks.displacements)
      return fail("{}_{} is NULL", buffer, blocks.counts ? "displacements" : "counts");
    for (int i = 0; i < size_; ++i) extent(buffer, i, blocks.base, blocks.displacements[i], blocks.counts[i]);
  }

  // reduce_scatter: one block for each rank, one after the other, of whole elements.
  void vectors(const uint64_t* counts) {
    args_.send.counts = counts;
    if (!counts) {
      if (buffers_) return fail("recv_counts is NULL");
      args_.send.bytes = given_.bytes;
      return;
    }
    const uint64_t element = args_.reduction.element_bytes();
    uint64_t total = 0;
    for (int i = 0; i < size_; ++i) {
      if (counts[i] % element != 0)
        return fail("recv_counts[{}] is {} bytes, which is no multiple of the {} bytes of an element", i, counts[i],
                    element);
      if (__builtin_add_overflow(total, counts[i], &total)) return fail("the sum of recv_counts overflows 64 bits");
    }
    extent(args_.in_place ? "recv" : "send", 0, args_.send.base, 0, total);
  }

  static bool is_send(const Stretch& block) { return block.buffer[0] == 's'; }

  // Tells without a list that blocks as most programs have them do not overlap.
  bool may_overlap() const {
    const Hull &recv = hulls_[0], &send = hulls_[1];
    return (overlap_ == Overlap::kRefused && !recv.in_order) || (recv.start < send.end && send.start < recv.end);
  }

  // What is written must not be read or, where that is refused, written by another block.
  void disjoint() {
    list_ = true;
    blocks();
    std::sort(extents_.begin(), extents_.end(), [](const Stretch& a, const Stretch& b) { return a.start < b.start; });
    const Stretch* reaches[2] = {nullptr,
                                 nullptr};  // of the recv and of the send blocks so far: the one that ends last
    for (const Stretch& e : extents_) {
      const int kind = is_send(e);
      for (const int other : {0, 1}) {
        const Stretch* const before = reaches[other];
        const bool allowed = kind == other && (kind == 1 || overlap_ == Overlap::kAllowed);
        if (before && before->end > e.start && !allowed) {
          fail("{} block {} and {} block {} overlap", before->buffer, before->block, e.buffer, e.block);
          return;
        }
      }
      if (!reaches[kind] || e.end > reaches[kind]->end) reaches[kind] = &e;
    }
  }

  const ibcoll_collective_args_t& given_;
  const Collective* row_;
  int rank_;
  int size_;
  bool buffers_;  // false: they, and where blocks lie, are not looked at
  Overlap overlap_;
  Args args_;
  Status status_;
  struct Hull {
    const std::byte* start = nullptr;
    const std::byte* end = nullptr;
    bool in_order = true;  // each block begins where the one before ends, or later
  };
  static Reach reach(const Hull& hull, const void* address) {
    const auto at = reinterpret_cast<uint64_t>(address);
    if (!hull.end) return {};
    return {reinterpret_cast<uint64_t>(hull.start) - at, reinterpret_cast<uint64_t>(hull.end) - at};
  }
  Hull hulls_[2];  // of the recv and of the send blocks
  bool list_ = false;
  std::vector<Stretch> extents_;  // all blocks, if they may overlap
};

Result<Args> check(const ibcoll_collective_args_t& given, int rank, int size, bool buffers, Overlap overlap,
                   Reaches* reaches) {
  if (given.struct_size < sizeof given)  // then not all of it may be read
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_collective_args_t.struct_size is {}: set it to sizeof, {} bytes",
                 given.struct_size, sizeof given);
  return Check(given, rank, size, buffers, overlap).run(reaches);
}

}  // namespace

Result<Args> check_arguments(const ibcoll_collective_args_t& given, int rank, int size, Overlap overlap,
                             Reaches* reaches) {
  return check(given, rank, size, true, overlap, reaches);
}

Result<Args> check_without_buffers(const ibcoll_collective_args_t& given, int rank, int size) {
  return check(given, rank, size, false, Overlap::kRefused, nullptr);
}

uint32_t call_signature(const Args& args, std::string_view algorithm, ibcoll_scheme_t scheme, int size) {
  const Collective& row = kCatalog[args.collective];
  Digest digest;
  digest.add(static_cast<uint64_t>(args.collective)).add(algorithm).add(static_cast<uint64_t>(scheme));
  digest.add(static_cast<uint64_t>(args.root));
  digest.add(args.internal ? 1 : 0);
  if (row.reduces())
    digest.add(static_cast<uint64_t>(args.reduction.type))
        .add(args.reduction.element_bytes())
        .add(static_cast<uint64_t>(args.reduction.op->index));
  if (!row.irregular()) digest.add(args.bytes);
  if (row.sizes == SizesKnown::kToAll) {
    const uint64_t* const counts = row.reduces() ? args.send.counts : args.recv.counts;
    for (int i = 0; i < size; ++i) digest.add(counts[i]);
  }
  return digest.folded();
}

}  // namespace ibcoll
