// SPDX-License-Identifier: BSD-3-Clause
// The topology of the ranks: nodes (ranks that share memory) and how many ranks there are for each core.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace ibcoll {

// A text that distinguishes this node from others if the bootstrap does not: the kernel's boot id and the namespaces
// that decide whether processes can share memory and read each other's.
std::string node_identity();

// The same for processes with the same network interfaces, addresses and routes.
std::string network_identity();

// A word that identifies this machine since it booted; empty where the kernel has none.
IBCOLL_MODULE_API std::string boot_id();

inline constexpr double kNoQuota = 1e9;
// The CPUs that this process may run on (its affinity; if the kernel does not report it, those of the machine), one bit
// each, modulo the number of bits, and how many of them its cgroup's quota is worth.
struct CpuShare {
  std::array<uint64_t, 16> cpus{};
  double quota = kNoQuota;
};
CpuShare cpu_share();
// The quota alone; of both versions of cgroups, whose files lie below `root`, "" but in tests.
double cgroup_cores(const std::string& root);
// Ranks per core of these ranks, all of one machine, over the cores that they may use together; at least 1.
double ranks_per_core(const std::vector<CpuShare>& ranks);
// True when there is just one CPU that these ranks may run on.
bool share_one_cpu(const std::vector<CpuShare>& ranks);

// Dense node numbers, in the order of the lowest rank, from one text per rank.
std::vector<int> number_nodes(const std::vector<std::string>& identities);

}  // namespace ibcoll
