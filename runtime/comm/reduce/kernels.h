// SPDX-License-Identifier: BSD-3-Clause
// The kernels of predefined operations: tables of type x operation, and which of them this processor runs.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "runtime/comm/reduce/operation.h"
#include "runtime/comm/reduce/types.h"

namespace ibcoll {

// result[i] = lower[i] op upper[i], where `lower` comes from the lower ranks. `result` may be one of the two, but not
// overlap it otherwise. None needs to be aligned. Padding of long double is written as 0; a pair is copied with its
// padding.
using ReduceKernel = void (*)(const void* lower, const void* upper, void* result, uint64_t count);

using KernelColumn = std::array<ReduceKernel, kOpCount>;   // of one type, by OpIndex; nullptr: not in this table
using KernelTable = std::array<KernelColumn, kTypeCount>;  // by ibcoll_type_t

// Kernels that vector instructions speed up, compiled once for each set of instructions. All sets give the same bits, but
// for which NaN is a result.
struct KernelSet {
  const char* instructions;
  bool (*runs_here)() noexcept;
  const KernelTable* kernels;
};
std::span<const KernelSet> kernel_sets() noexcept;  // of this architecture; the best one last
const KernelSet& chosen_kernels() noexcept;         // the last one that this processor runs

// The kernels that the sets do not have.
extern const KernelTable kScalarKernels;

// From the chosen set, or a scalar one; nullptr when the operation is not defined for the type. Of IBCOLL_OPAQUE: it
// counts bytes.
ReduceKernel reduce_kernel(const ibcoll_op& op, ibcoll_type_t type) noexcept;

}  // namespace ibcoll
