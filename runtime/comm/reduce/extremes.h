// SPDX-License-Identifier: BSD-3-Clause
// Which of two values MIN and MAX take, one by one, and which of two pairs MINLOC and MAXLOC.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "runtime/comm/reduce/types.h"

namespace ibcoll {

// -1, 0, 1: a comes before, with, after b in MIN. NaN comes first, and -0 before 0.
template <typename T>
int order(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return static_cast<int>(std::isnan(b)) - static_cast<int>(std::isnan(a));
    if (a == b) return static_cast<int>(std::signbit(b)) - static_cast<int>(std::signbit(a));
  }
  return static_cast<int>(b < a) - static_cast<int>(a < b);
}
// The same in MAX: NaN comes first again.
template <typename T>
int reverse_order(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return order(-a, -b);
  return order(b, a);
}

// The pair with the value that comes first, and of equal ones the one with the lower index: as it is, with its padding.
template <typename Value, bool kGreatest>
void locate(const void* lower, const void* upper, void* result, uint64_t count) {
  const auto* const a = static_cast<const Unaligned<Pair<Value>>*>(lower);
  const auto* const b = static_cast<const Unaligned<Pair<Value>>*>(upper);
  auto* const to = static_cast<std::byte*>(result);
  for (uint64_t i = 0; i < count; ++i) {
    const Pair<Value> x = a[i].value, y = b[i].value;
    const int ordered = kGreatest ? reverse_order(x.value, y.value) : order(x.value, y.value);
    const bool first = ordered < 0 || (ordered == 0 && x.index <= y.index);
    std::memmove(to + i * sizeof x, first ? a + i : b + i, sizeof x);
  }
}

}  // namespace ibcoll
