// SPDX-License-Identifier: BSD-3-Clause
// Vectors of 64 bytes, and halves to float and back by hardware.
#if defined(__x86_64__)
#include <immintrin.h>

#include <type_traits>

#include "runtime/comm/reduce/kernels.h"

// From here to the end of the file, and not a header before it.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,f16c,prefer-vector-width=512")
#endif
#define IBCOLL_F16C

namespace ibcoll {
namespace avx512 {
namespace {

#include "runtime/comm/reduce/short_floats.inc"
#include "runtime/comm/reduce/vector_kernels.inc"

}  // namespace
}  // namespace avx512

extern const KernelTable kAvx512Kernels;
constexpr KernelTable kAvx512Kernels = avx512::make_table();

}  // namespace ibcoll

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
