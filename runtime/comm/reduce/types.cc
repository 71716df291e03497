// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/comm/reduce/types.h"

#include <array>

namespace ibcoll {
namespace {

struct Type {
  const char* name;
  uint64_t bytes;
};

// In the order of ibcoll_type_t.
constexpr std::array kTypes{
    Type{"int8", 1},
    Type{"uint8", 1},
    Type{"int16", 2},
    Type{"uint16", 2},
    Type{"int32", 4},
    Type{"uint32", 4},
    Type{"int64", 8},
    Type{"uint64", 8},
    Type{"float", sizeof(float)},
    Type{"double", sizeof(double)},
    Type{"long_double", sizeof(long double)},
    Type{"float16", 2},
    Type{"bfloat16", 2},
    Type{"complex_float", sizeof(Complex<float>)},
    Type{"complex_double", sizeof(Complex<double>)},
    Type{"complex_long_double", sizeof(Complex<long double>)},
    Type{"bool", 1},
    Type{"float_int", sizeof(Pair<float>)},
    Type{"double_int", sizeof(Pair<double>)},
    Type{"long_double_int", sizeof(Pair<long double>)},
    Type{"short_int", sizeof(Pair<short>)},
    Type{"int_int", sizeof(Pair<int>)},
    Type{"long_int", sizeof(Pair<long>)},
    Type{"opaque", 0},
};
static_assert(kTypes.size() == kTypeCount);

}  // namespace

uint64_t type_bytes(ibcoll_type_t type) noexcept { return is_type(type) ? kTypes[type].bytes : 0; }
const char* type_name(ibcoll_type_t type) noexcept { return is_type(type) ? kTypes[type].name : "?"; }

}  // namespace ibcoll
