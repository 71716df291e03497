// SPDX-License-Identifier: BSD-3-Clause
// The results of reductions of each type, computed by other means than the library's kernels: integers in 128 bits,
// short floats by looking for the nearest of all values, extremes by sorting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/comm/reduce/operation.h"
#include "runtime/comm/reduce/types.h"

namespace ibcoll {

// Elements as they lie in memory, one after the other.
using Elements = std::vector<std::byte>;

struct ReferenceType {
  ibcoll_type_t type;
  uint64_t bytes;           // of an element
  Elements values;          // worth trying, each with each: both sides of the sign bit, extremes, NaN
  bool (*has)(OpIndex op);  // as the interface says
  Elements (*apply)(OpIndex op, const std::byte* lower, const std::byte* upper);
  bool (*same)(const std::byte* got,
               const std::byte* wanted);  // any NaN is as good as another; padding is not looked at
};

const std::vector<ReferenceType>& reference_types();

}  // namespace ibcoll
