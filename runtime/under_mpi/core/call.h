// SPDX-License-Identifier: BSD-3-Clause
// One call of a collective, as the program made it.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "runtime/under_mpi/core/collective.h"

namespace ibcoll::under_mpi {

// An array of counts or displacements: of int, or of 64 bits (the _c variants). Not owned.
class Numbers {
 public:
  Numbers() = default;
  Numbers(const int* narrow) noexcept : narrow_(narrow) {}  // NOLINT: an array is what it is made from
  Numbers(const int64_t* wide) noexcept : wide_(wide) {}    // NOLINT
  Numbers(const long long* wide) noexcept                   // NOLINT: MPI_Count of some MPIs
      : wide_(reinterpret_cast<const int64_t*>(wide)) {}
  bool given() const noexcept { return narrow_ != nullptr || wide_ != nullptr; }
  bool wide() const noexcept { return wide_ != nullptr; }
  const void* address() const noexcept { return wide_ != nullptr ? static_cast<const void*>(wide_) : narrow_; }
  int64_t operator[](int index) const noexcept { return wide_ != nullptr ? wide_[index] : narrow_[index]; }

 private:
  const int* narrow_ = nullptr;
  const int64_t* wide_ = nullptr;
};

// The send or the receive side. A collective uses the fields that its MPI function has; the others keep their defaults.
struct Side {
  const void* buffer = nullptr;  // MPI_IN_PLACE, MPI_BOTTOM included
  int64_t count = 0;             // of one block
  MPI_Datatype type = MPI_DATATYPE_NULL;
  Numbers counts = {};                  // v- and w-forms, and recvcounts of reduce_scatter (on the recv side)
  Numbers displacements = {};           // v-forms: in extents of `type`; alltoallw: in bytes
  const MPI_Datatype* types = nullptr;  // alltoallw
};

// bcast: `recv` is the buffer. Reductions: `recv` has count and type, `send` the operand's buffer only.
struct Call {
  Collective collective = Collective::kBarrier;
  Side send = {};
  Side recv = {};
  MPI_Op op = MPI_OP_NULL;
  int root = 0;
};

}  // namespace ibcoll::under_mpi
