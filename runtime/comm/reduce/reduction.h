// SPDX-License-Identifier: BSD-3-Clause
// An operation bound to a type: what algorithms combine operands with.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "runtime/comm/reduce/kernels.h"
#include "runtime/comm/reduce/operation.h"
#include "runtime/comm/reduce/types.h"
#include "runtime/comm/reduce/user_operation.h"
#include "runtime/machine/simulation.h"

namespace ibcoll {

class Reduction {
 public:
  ibcoll_op_t op = nullptr;
  ibcoll_type_t type = IBCOLL_INT8;

  Reduction() = default;
  // `element_bytes` is read for IBCOLL_OPAQUE only. `call`: for an operation on elements of many kinds.
  Reduction(ibcoll_op_t op, ibcoll_type_t type, uint64_t element_bytes = 0, void* call = nullptr) noexcept;

  // False: the operation is not defined for the type.
  bool defined() const noexcept { return kernel_ || (op && op->user_defined()); }
  // True when combine() may put the result in the place of either operand; else in that of `upper` only.
  bool result_may_replace_lower() const noexcept { return kernel_; }
  // The result does not depend on the order in which operands are combined: integers, where sums and products wrap.
  bool exact() const noexcept { return kernel_ && op->commutative && type <= IBCOLL_UINT64; }
  // The size of one element. Messages are cut at multiples of it: an operation never sees a part of an element.
  uint64_t element_bytes() const noexcept { return element_bytes_; }

  // inout = in op inout
  void operator()(const void* in, void* inout, uint64_t count) const {
    if (work_is_simulated(inout, in, count * element_bytes_)) return;
    if (kernel_)
      kernel_(in, inout, inout, count * units_);
    else
      run_user_function(in, inout, count);
  }
  // result = lower op upper, one pass less than a copy and an operation in place.
  void combine(const void* lower, const void* upper, void* result, uint64_t count) const {
    if (work_is_simulated(result, result == lower ? upper : lower, count * element_bytes_)) return;
    if (kernel_) {
      kernel_(lower, upper, result, count * units_);
    } else {
      if (result != upper) std::memcpy(result, upper, count * element_bytes_);
      run_user_function(lower, result, count);
    }
  }
  // The result of a reduction over one operand: that operand, but 0 or 1 for logical operations. To be used wherever a
  // result has one operand (a team of one, the first rank of a scan). `result` may be `operand`.
  void single(void* result, const void* operand, uint64_t count) const {
    if (result != operand && work_is_simulated(result, operand, count * element_bytes_)) return;
    if (to_truth_)
      to_truth_(operand, operand, result, count);
    else if (result != operand && count > 0)
      std::memcpy(result, operand, count * element_bytes_);
  }
  bool single_is_operand() const noexcept { return !to_truth_; }

 private:
  void run_user_function(const void* in, void* inout, uint64_t count) const {
    const UserOperation inside;
    if (op->function)
      op->function(in, inout, count, type, op->user);
    else
      op->element_function(in, inout, count, element_bytes_, type, op->user, call_);
  }

  uint64_t element_bytes_ = 1;
  uint64_t units_ = 1;               // that the kernel counts in an element: bytes of an opaque one
  ReduceKernel kernel_ = nullptr;    // of a predefined operation
  ReduceKernel to_truth_ = nullptr;  // of a logical one: x or x
  void* call_ = nullptr;             // the program's, for element_function
};

// "sum, prod, min": the predefined operations that a type has.
std::string operations_of(ibcoll_type_t type);

}  // namespace ibcoll
