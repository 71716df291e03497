// SPDX-License-Identifier: BSD-3-Clause
// The types of elements that ibcoll reduces.
#pragma once

#include <cstdint>

#include "runtime/base/status.h"
#include "runtime/include/ibcoll.h"

namespace ibcoll {

inline constexpr int kTypeCount = IBCOLL_OPAQUE + 1;

constexpr bool is_type(ibcoll_type_t type) noexcept { return type >= 0 && type < kTypeCount; }
// The bytes of one element; 0 for IBCOLL_OPAQUE, whose size the caller gives, and for a value outside the enumeration.
uint64_t type_bytes(ibcoll_type_t type) noexcept;
IBCOLL_MODULE_API const char* type_name(ibcoll_type_t type) noexcept;  // "?" outside the enumeration

// How elements lie in memory.
template <typename Real>
struct Complex {
  Real re, im;
};
// The elements of MINLOC and MAXLOC. The layout is C's, padding included, as MPI asks for (MPI 4.0, section 6.9.4).
template <typename Value>
struct Pair {
  Value value;
  int index;
};
// At any address: what packed structures and Fortran's COMMON blocks hold is not aligned.
template <typename T>
struct [[gnu::packed]] Unaligned {
  T value;
};

}  // namespace ibcoll
