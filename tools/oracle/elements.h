// SPDX-License-Identifier: BSD-3-Clause
// Operands whose reductions are exact in any order, and the results: computed in integers, not by the library's
// kernels. An element is an integer; store() makes the element of the type that it stands for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/include/ibcoll.h"

namespace ibcoll::oracle {

// Bytes of an element; 0 for IBCOLL_OPAQUE, whose size the caller gives.
uint64_t element_bytes(ibcoll_type_t type);
// "uint8", "double", ...; nullptr: none of ibcoll_type_t.
const char* type_name(ibcoll_type_t type);
// False: the operation is not one that the type has.
bool has(ibcoll_type_t type, ibcoll_op_t op);
// Element `index` of the operand with this key, as an integer. Complex numbers have the imaginary part in the upper
// half, pairs the value there and the index below.
uint64_t operand(uint64_t key, uint64_t index, ibcoll_type_t type, ibcoll_op_t op);
// A reduction over this operand alone.
uint64_t alone(uint64_t operand, ibcoll_op_t op);
// lower op upper, for operands as above and their results.
uint64_t combine(uint64_t lower, uint64_t upper, ibcoll_op_t op);
// `bytes`: of an element.
void store(std::byte* to, ibcoll_type_t type, uint64_t bytes, uint64_t value);

// Composition of x -> a x + b (mod 2^32), packed in 64 bits, for IBCOLL_UINT64: associative and not commutative. Made
// at first use, never freed.
ibcoll_op_t composition();
// The same for opaque elements of kSealedBytes: the map, and words that tell whether an element was cut or put
// together. Results of such elements are not the expected ones.
inline constexpr uint64_t kSealedBytes = 24;
ibcoll_op_t sealed_composition();
// The predefined operations.
inline constexpr int kOperations = 13;
ibcoll_op_t operation(int index);
const char* operation_name(ibcoll_op_t op);
// BAND, BOR, BXOR, which need an integer type.
bool bitwise(ibcoll_op_t op);

}  // namespace ibcoll::oracle
