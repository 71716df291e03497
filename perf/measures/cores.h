// SPDX-License-Identifier: BSD-3-Clause
// The cores that a measure runs on.
#pragma once

#include <sched.h>

#include <vector>

namespace ibcoll::perf {

// The cores that this process may use; empty where the kernel does not report them.
inline std::vector<int> allowed_cores() {
  cpu_set_t allowed;
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed)) cores.push_back(cpu);
  return cores;
}

// The calling thread, from now on. False: that core cannot be used.
inline bool bind_to(int cpu) {
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(cpu, &own);
  return ::sched_setaffinity(0, sizeof own, &own) == 0;
}

}  // namespace ibcoll::perf
