// SPDX-License-Identifier: BSD-3-Clause
// How a Prepared is made from a call: one function for each kind of collective.
#pragma once

#include "runtime/under_mpi/core/call.h"
#include "runtime/under_mpi/core/communicator.h"
#include "runtime/under_mpi/core/prepared.h"

namespace ibcoll::under_mpi {

// An address at an offset, also a negative one, from a buffer of the program, which may be MPI_BOTTOM.
inline char* at(const void* buffer, int64_t bytes) noexcept {
  return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(buffer) + static_cast<uintptr_t>(bytes));
}

// `count` elements, one after the other.
struct Elements {
  const void* buffer = nullptr;
  int64_t count = 0;
  const Type* type = nullptr;
  uint64_t bytes() const noexcept { return static_cast<uint64_t>(count * type->size); }
};

class Builder {
 public:
  Builder(const Communicator& comm, const Call& call, Prepared& out) noexcept
      : call_(call), out_(out), args_(out.args), rank_(comm.rank()), size_(comm.size()) {}

  Reason build();

 private:
  Reason bcast();
  Reason from_all(int sent_blocks);
  Reason allgatherv();
  Reason alltoallv();
  Reason gather();
  Reason gatherv();
  Reason scatter();
  Reason scatterv();
  Reason reduction();
  Reason reduce_scatter();

  // One run of elements.
  void send_run(const void* buffer, int64_t count, const Type& type);
  // Input that is already there, before a packed result replaces it: `count` elements at `buffer`, at `offset` bytes.
  struct Input {
    const void* buffer = nullptr;
    int64_t count = 0;
    int64_t offset = 0;
  };
  void receive_run(void* buffer, int64_t count, const Type& type, Input input);
  // This rank's own block of `count` elements, in place among the blocks to receive.
  Input own_block(int64_t count, const Type& type) const noexcept {
    return {at(call_.recv.buffer, rank_ * count * type.extent), count, rank_ * count * type.size};
  }
  // A block per rank.
  enum class InPlace { kNo, kOwnBlock, kAllBlocks };
  Reason send_blocks(const Side& side);
  Reason receive_blocks(const Side& side, InPlace in_place);
  struct Blocks;
  Reason measure(const Side& side, BlockArrays& arrays, Blocks& blocks);

  // The type and operation of a reduction, into args_. `count` elements are the operand.
  Reason operation(int64_t count, Operation* operation, const Type** type);
  // Operand and result, of `in` and `out` elements.
  void operands(const Operation& operation, const Type& type, int64_t in, int64_t out, bool receives);

  // For calls in which this rank sends itself another number of bytes than it offers; see builder_own.cc.
  void move(Elements sent, Elements offered);
  Reason build_around_own_block();
  void leave_out_own_block();
  Reason blocks_of_two_sizes(const Type& sent, const Type& offered);

  // The type of a side whose count makes sense; NULL: they do not.
  static const Type* checked(const Side& side) noexcept { return side.count < 0 ? nullptr : find_type(side.type); }
  bool in_place() const noexcept { return call_.send.buffer == MPI_IN_PLACE || out_.own_moved; }
  bool root_is_valid() const noexcept { return call_.root >= 0 && call_.root < size_; }
  bool is_root() const noexcept { return rank_ == call_.root; }
  // The program passes one buffer as both, instead of MPI_IN_PLACE.
  bool aliased() const noexcept {
    return call_.send.buffer == call_.recv.buffer && call_.send.buffer != MPI_BOTTOM && !in_place();
  }
  bool refused_alias() const noexcept;

  const Call& call_;
  Prepared& out_;
  ibcoll_collective_args_t& args_;
  const int rank_;
  const int size_;
};

}  // namespace ibcoll::under_mpi
