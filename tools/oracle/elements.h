// SPDX-License-Identifier: BSD-3-Clause
// Operands whose reductions are exact in any order, and what comes out: computed in integers, not by the library's kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/include/ibcoll.h"

namespace ibcoll::oracle {

// Bytes of an element; 0: a type that the oracle does not know.
uint64_t element_bytes(ibcoll_type_t type);
// "uint8", "double", ...; nullptr: not known.
const char* type_name(ibcoll_type_t type);

// Elements `first`, ... of the operand with this key, as integers.
void operands(std::span<uint64_t> values, uint64_t key, uint64_t first, ibcoll_op_t op);
// values[i] = values[i] op upper[i], for operands as above and what comes out of them.
void combine(std::span<uint64_t> values, std::span<const uint64_t> upper, ibcoll_op_t op);
void store(std::byte* to, ibcoll_type_t type, std::span<const uint64_t> values);

// Composition of x -> a x + b (mod 2^32), packed in 64 bits, for IBCOLL_UINT64: associative and not commutative. Made at first
// use, never freed.
ibcoll_op_t composition();
// The predefined operations.
inline constexpr int kOperations = 10;
ibcoll_op_t operation(int index);
const char* operation_name(ibcoll_op_t op);
// BAND, BOR, BXOR, which need an integer type.
bool bitwise(ibcoll_op_t op);

}  // namespace ibcoll::oracle
