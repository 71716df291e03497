// SPDX-License-Identifier: BSD-3-Clause
// For every processor of the architecture that is compiled for: SSE2 on x86-64, NEON on 64-bit ARM.
#include <type_traits>

#include "runtime/comm/reduce/kernels.h"

namespace ibcoll {
namespace baseline {
namespace {

#include "runtime/comm/reduce/short_floats.inc"
#include "runtime/comm/reduce/vector_kernels.inc"

}  // namespace
}  // namespace baseline

extern const KernelTable kBaselineKernels;
constexpr KernelTable kBaselineKernels = baseline::make_table();

}  // namespace ibcoll
