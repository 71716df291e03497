// SPDX-License-Identifier: BSD-3-Clause
// Reductions: one template, one table of type x operation.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "runtime/include/ibcoll.h"

// An operation: predefined (its kernels come from the table) or the user's.
struct ibcoll_op {
  const char* name;
  bool commutative;
  int index;                  // row of the table; -1: user-defined
  ibcoll_reduce_fn function;  // user-defined only
  void* user;
  std::atomic<int> requests{0};  // that hold it, of all contexts; user-defined only

  bool user_defined() const noexcept { return index < 0; }
};

namespace ibcoll {

uint64_t type_bytes(ibcoll_type_t type) noexcept;  // 0 for a value outside the enumeration
const char* type_name(ibcoll_type_t type) noexcept;

// result[i] = lower[i] op upper[i], where `lower` comes from the lower ranks. `result` may be one of the two, but not overlap it
// otherwise. None needs to be aligned.
using ReduceKernel = void (*)(const void* lower, const void* upper, void* result, uint64_t count);
// nullptr when the operation is not defined for the type (bitwise operations on floating point).
ReduceKernel reduce_kernel(ibcoll_op_t op, ibcoll_type_t type) noexcept;

// An operation bound to a type.
struct Reduction {
  ibcoll_op_t op = nullptr;
  ibcoll_type_t type = IBCOLL_INT8;
  ReduceKernel kernel = nullptr;

  uint64_t element_bytes() const noexcept { return type_bytes(type); }
  // inout = in op inout
  void operator()(const void* in, void* inout, uint64_t count) const {
    if (kernel)
      kernel(in, inout, inout, count);
    else
      op->function(in, inout, count, type, op->user);
  }
  // result = lower op upper, one pass less than a copy and an operation in place. The result may be one of the two where
  // there is a kernel.
  void combine(const void* lower, const void* upper, void* result, uint64_t count) const {
    if (kernel) {
      kernel(lower, upper, result, count);
    } else {
      std::memcpy(result, upper, count * element_bytes());
      op->function(lower, result, count, type, op->user);
    }
  }
};

}  // namespace ibcoll
