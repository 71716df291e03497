// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sched.h>

#include <cerrno>
#include <memory>
#include <vector>

namespace ibcoll {

// The numbers of the CPUs that the calling thread may run on, ascending. Empty where the kernel does not say, as under
// a seccomp filter that refuses sched_getaffinity(2). hwloc must not load a topology there: hwloc 2.9 repeats that call
// with larger and larger sets until it succeeds, and never returns.
inline std::vector<int> own_cpus() {
  constexpr int kMostCpus = 1 << 20;
  std::vector<int> cpus;
  // EINVAL: the machine has more CPUs than the set has bits.
  for (int bits = CPU_SETSIZE; bits <= kMostCpus; bits *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(static_cast<size_t>(bits)),
                                                               [](cpu_set_t* memory) { CPU_FREE(memory); });
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(bits));
    if (!set) break;
    if (::sched_getaffinity(0, bytes, set.get()) != 0) {
      if (errno == EINVAL) continue;
      break;
    }
    for (int cpu = 0; cpu < bits; ++cpu)
      if (CPU_ISSET_S(static_cast<size_t>(cpu), bytes, set.get())) cpus.push_back(cpu);
    break;
  }
  return cpus;
}

}  // namespace ibcoll
