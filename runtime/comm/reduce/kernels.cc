// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/comm/reduce/kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace ibcoll {

extern const KernelTable kBaselineKernels;
#if defined(__x86_64__)
extern const KernelTable kAvx2Kernels, kAvx512Kernels;
#endif

namespace {

bool always() noexcept { return true; }
#if defined(__x86_64__)
// clang's __builtin_cpu_supports() knows no "f16c".
bool has_f16c() noexcept {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
// Also asks whether the system saves the registers.
bool has_avx2() noexcept { return __builtin_cpu_supports("avx2") && has_f16c(); }
bool has_avx512() noexcept {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

constexpr KernelSet kSets[] = {
    {"baseline", always, &kBaselineKernels},
#if defined(__x86_64__)
    {"avx2", has_avx2, &kAvx2Kernels},
    {"avx512", has_avx512, &kAvx512Kernels},
#endif
};

const KernelSet& best() noexcept {
  const KernelSet* best = &kSets[0];
  for (const KernelSet& set : kSets) {
    if (set.runs_here()) best = &set;
  }
  return *best;
}

}  // namespace

std::span<const KernelSet> kernel_sets() noexcept { return kSets; }

const KernelSet& chosen_kernels() noexcept {
  static const KernelSet& chosen = best();
  return chosen;
}

ReduceKernel reduce_kernel(const ibcoll_op& op, ibcoll_type_t type) noexcept {
  if (op.user_defined() || !is_type(type)) return nullptr;
  const auto row = static_cast<size_t>(op.index);
  const ReduceKernel vector = (*chosen_kernels().kernels)[type][row];
  return vector ? vector : kScalarKernels[type][row];
}

}  // namespace ibcoll
