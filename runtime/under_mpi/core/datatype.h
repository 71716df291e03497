// SPDX-License-Identifier: BSD-3-Clause
// The data that core keeps about a datatype: how long it is packed, whether it must be packed at all, and which element
// of ibcoll's reductions it is.
#pragma once

#include <ibcoll.h>
#include <mpi.h>

#include <cstdint>

namespace ibcoll::under_mpi {

// Bits for the operations that MPI permits on a predefined type (MPI 4.0, section 6.9.2), by the order of Operators in
// operation.cc.
enum OperationClass : uint8_t {
  kOrders = 1,      // MIN, MAX
  kArithmetic = 2,  // SUM, PROD
  kBitwise = 4,
  kLogical = 8,
  kLocations = 16,  // MINLOC, MAXLOC
};

struct Type {
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  int64_t size = 0;    // bytes of an element, packed
  int64_t extent = 0;  // from one element to the next
  int64_t true_lb = 0;
  int64_t true_extent = 0;
  // An element is a run of `size` bytes at true_lb, in the order in which MPI packs it.
  bool one_run = false;
  bool predefined = false;
  uint8_t classes = 0;  // of operations; 0: none of the predefined
  ibcoll_type_t element = IBCOLL_OPAQUE;

  // Whether `count` elements, one after the other, are one run.
  bool dense(int64_t count) const noexcept { return size == 0 || (one_run && (count <= 1 || extent == size)); }
};

// Valid while the type is. NULL: MPI_DATATYPE_NULL, or no memory.
const Type* find_type(MPI_Datatype handle) noexcept;

}  // namespace ibcoll::under_mpi
