// SPDX-License-Identifier: BSD-3-Clause
// Vectors of 32 bytes, and halves to float and back by hardware.
#if defined(__x86_64__)
#include <immintrin.h>

#include <type_traits>

#include "runtime/comm/reduce/kernels.h"

// From here to the end of the file, and not a header before it.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,f16c")
#endif
#define IBCOLL_F16C

namespace ibcoll {
namespace avx2 {
namespace {

#include "runtime/comm/reduce/short_floats.inc"
#include "runtime/comm/reduce/vector_kernels.inc"

}  // namespace
}  // namespace avx2

extern const KernelTable kAvx2Kernels;
constexpr KernelTable kAvx2Kernels = avx2::make_table();

}  // namespace ibcoll

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
