// SPDX-License-Identifier: BSD-3-Clause
// Operations of MPI as operations of ibcoll.
#pragma once

#include <ibcoll.h>
#include <mpi.h>

#include <cstdint>

#include "runtime/under_mpi/core/collective.h"
#include "runtime/under_mpi/core/datatype.h"

namespace ibcoll::under_mpi {

// The data of an operation of the program: op_call of ibcoll's arguments. It lives until the collective is complete.
struct OperationCall {
  MPI_Op op = MPI_OP_NULL;
  const Type* type = nullptr;
};

struct Operation {
  ibcoll_op_t op = nullptr;
  ibcoll_type_t type = IBCOLL_OPAQUE;
  // OPAQUE elements are packed, element by element, where the type is not dense. Others are the type's own layout.
  int64_t element_bytes = 0;
  bool of_program = false;
};

// kOperation: MPI knows no such operation on the type, or ibcoll does not. kBadArguments: no operation.
Reason find_operation(MPI_Op op, const Type& type, Operation* found) noexcept;

bool is_predefined(MPI_Op op) noexcept;

}  // namespace ibcoll::under_mpi
