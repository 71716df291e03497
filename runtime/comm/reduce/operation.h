// SPDX-License-Identifier: BSD-3-Clause
// Operations: predefined ones, whose kernels come from a table, and the user's.
#pragma once

#include <atomic>

#include "runtime/base/status.h"
#include "runtime/include/ibcoll.h"

namespace ibcoll {

// The rows of the tables of kernels.
enum OpIndex : int {
  kUserDefined = -1,
  kSum,
  kProd,
  kMin,
  kMax,
  kBand,
  kBor,
  kBxor,
  kLand,
  kLor,
  kLxor,
  kMinloc,
  kMaxloc,
  kReplace,
  kOpCount
};

}  // namespace ibcoll

struct ibcoll_op {
  const char* name;
  bool commutative;
  int index;                  // an OpIndex
  ibcoll_reduce_fn function;  // user-defined only; nullptr: element_function is set
  void* user;
  ibcoll_element_reduce_fn element_function = nullptr;
  std::atomic<int> requests{0};  // that hold it, of all contexts; user-defined only

  bool user_defined() const noexcept { return index < 0; }
};

namespace ibcoll {

// The name of the predefined operation of a row.
IBCOLL_MODULE_API const char* operation_name(OpIndex index) noexcept;

}  // namespace ibcoll
