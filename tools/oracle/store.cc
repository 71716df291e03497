// SPDX-License-Identifier: BSD-3-Clause
// Integers as elements of each type. Padding is 0.
#include <cfloat>
#include <cstring>
#include <iterator>
#include <type_traits>

#include "runtime/base/hash.h"
#include "tools/oracle/elements.h"

namespace ibcoll::oracle {
namespace {

enum class Kind { kInteger, kReal, kComplex, kBool, kPair, kOpaque };

struct Type {
  ibcoll_type_t type;
  Kind kind;
  uint64_t bytes;
  void (*store)(std::byte* to, uint64_t value);
};

template <typename T>
void store_as(std::byte* to, uint64_t value) {
  const T number = static_cast<T>(value);
  // 10 of the 16 bytes of x86's long double are the number.
  std::memcpy(to, &number, std::is_same_v<T, long double> && LDBL_MANT_DIG == 64 ? 10 : sizeof number);
}

// Whole numbers of few bits: half and bfloat16 hold them as they are.
void store_bfloat16(std::byte* to, uint64_t value) {
  uint32_t bits = 0;
  store_as<float>(reinterpret_cast<std::byte*>(&bits), value);
  store_as<uint16_t>(to, bits >> 16);
}
void store_half(std::byte* to, uint64_t value) {
  uint32_t exponent = 0;
  while (value >> (exponent + 1) > 0) ++exponent;
  const bool overflows = exponent > 15;
  const uint64_t fraction = exponent <= 10 ? value << (10 - exponent) : value >> (exponent - 10);
  store_as<uint16_t>(to, value == 0 ? 0 : overflows ? 0x7c00 : (exponent + 15) << 10 | (fraction & 0x3ff));
}

template <typename Real>
void store_complex(std::byte* to, uint64_t value) {
  store_as<Real>(to, static_cast<uint32_t>(value));
  store_as<Real>(to + sizeof(Real), value >> 32);
}

template <typename Value>
struct Pair {
  Value value;
  int index;
};
template <typename Value>
void store_pair(std::byte* to, uint64_t value) {
  store_as<Value>(to + offsetof(Pair<Value>, value), value >> 32);
  store_as<int>(to + offsetof(Pair<Value>, index), static_cast<uint32_t>(value));
}

template <typename T>
constexpr Type number(ibcoll_type_t name) {
  return {name, std::is_integral_v<T> ? Kind::kInteger : Kind::kReal, sizeof(T), store_as<T>};
}
template <typename Real>
constexpr Type complex_number(ibcoll_type_t name) {
  return {name, Kind::kComplex, 2 * sizeof(Real), store_complex<Real>};
}
template <typename Value>
constexpr Type pair(ibcoll_type_t name) {
  return {name, Kind::kPair, sizeof(Pair<Value>), store_pair<Value>};
}

constexpr Type kTypes[] = {number<int8_t>(IBCOLL_INT8),
                           number<uint8_t>(IBCOLL_UINT8),
                           number<int16_t>(IBCOLL_INT16),
                           number<uint16_t>(IBCOLL_UINT16),
                           number<int32_t>(IBCOLL_INT32),
                           number<uint32_t>(IBCOLL_UINT32),
                           number<int64_t>(IBCOLL_INT64),
                           number<uint64_t>(IBCOLL_UINT64),
                           number<float>(IBCOLL_FLOAT),
                           number<double>(IBCOLL_DOUBLE),
                           number<long double>(IBCOLL_LONG_DOUBLE),
                           {IBCOLL_FLOAT16, Kind::kReal, 2, store_half},
                           {IBCOLL_BFLOAT16, Kind::kReal, 2, store_bfloat16},
                           complex_number<float>(IBCOLL_COMPLEX_FLOAT),
                           complex_number<double>(IBCOLL_COMPLEX_DOUBLE),
                           complex_number<long double>(IBCOLL_COMPLEX_LONG_DOUBLE),
                           {IBCOLL_BOOL, Kind::kBool, 1, store_as<uint8_t>},
                           pair<float>(IBCOLL_FLOAT_INT),
                           pair<double>(IBCOLL_DOUBLE_INT),
                           pair<long double>(IBCOLL_LONG_DOUBLE_INT),
                           pair<short>(IBCOLL_SHORT_INT),
                           pair<int>(IBCOLL_INT_INT),
                           pair<long>(IBCOLL_LONG_INT),
                           {IBCOLL_OPAQUE, Kind::kOpaque, 0, nullptr}};
static_assert(std::size(kTypes) == IBCOLL_OPAQUE + 1);

}  // namespace

const char* type_name(ibcoll_type_t type) {
  static constexpr const char* kNames[] = {"int8",      "uint8",         "int16",          "uint16",
                                           "int32",     "uint32",        "int64",          "uint64",
                                           "float",     "double",        "long_double",    "float16",
                                           "bfloat16",  "complex_float", "complex_double", "complex_long_double",
                                           "bool",      "float_int",     "double_int",     "long_double_int",
                                           "short_int", "int_int",       "long_int",       "opaque"};
  static_assert(std::size(kNames) == std::size(kTypes));
  const auto index = static_cast<size_t>(type);
  return index < std::size(kNames) ? kNames[index] : nullptr;
}

uint64_t element_bytes(ibcoll_type_t type) { return kTypes[type].bytes; }

bool has(ibcoll_type_t type, ibcoll_op_t op) {
  const Kind kind = kTypes[type].kind;
  if (op == IBCOLL_REPLACE) return true;
  if (op == IBCOLL_MINLOC || op == IBCOLL_MAXLOC) return kind == Kind::kPair;
  if (op == IBCOLL_BAND || op == IBCOLL_BOR || op == IBCOLL_BXOR) return kind == Kind::kInteger;
  const bool real = kind == Kind::kInteger || kind == Kind::kReal;
  if (op == IBCOLL_LAND || op == IBCOLL_LOR || op == IBCOLL_LXOR) return real || kind == Kind::kBool;
  if (op == IBCOLL_MIN || op == IBCOLL_MAX) return real;
  return real || kind == Kind::kComplex;
}

// Opaque elements: the value, and words computed from it and from their position.
void store(std::byte* to, ibcoll_type_t type, uint64_t bytes, uint64_t value) {
  std::memset(to, 0, bytes);
  if (type != IBCOLL_OPAQUE) return kTypes[type].store(to, value);
  for (uint64_t at = 0; at < bytes; at += 8) {
    const uint64_t word = at == 0 ? value : scramble(value + at);
    std::memcpy(to + at, &word, bytes - at < 8 ? bytes - at : 8);
  }
}

}  // namespace ibcoll::oracle
