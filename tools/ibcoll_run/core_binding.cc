// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/core_binding.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

namespace ibcoll::run {
namespace {

// Processors that the scheduler gives this process; an upper bound of its cores. Machines with more than 1024 of them
// answer through sysconf.
int processor_count() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
}

int cores_of(hwloc_topology* topology) {
  const int cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
  return cores > 0 ? cores : hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
}

}  // namespace

CoreBinding::Topology CoreBinding::load() {
  hwloc_topology* raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return nullptr;
  Topology topology(raw);
  hwloc_topology_set_all_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING | HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM |
                                    HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING | HWLOC_TOPOLOGY_FLAG_NO_DISTANCES |
                                    HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS | HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS);
  return hwloc_topology_load(raw) == 0 ? std::move(topology) : nullptr;
}

std::vector<CoreBinding::Cores> CoreBinding::share_out(int ranks, const std::vector<std::string>& nodes, int cores) {
  std::vector<Cores> shares;
  if (ranks <= cores) {
    for (int i = 0; i < ranks; ++i) shares.push_back({i, 1});
    return shares;
  }
  int count = 0;
  std::vector<int> node_of;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (i == 0 || nodes[i] != nodes[i - 1]) ++count;
    node_of.push_back(count - 1);
  }
  if (count < 2 || (count % cores != 0 && cores % count != 0)) return shares;
  const int each = std::max(1, cores / count);
  for (const int node : node_of) shares.push_back({node * each % cores, each});
  return shares;
}

CoreBinding CoreBinding::for_ranks(int ranks, const std::vector<std::string>& nodes) {
  CoreBinding binding;
  if (ranks > processor_count() && nodes.empty()) return binding;
  Topology topology = load();
  if (topology) binding.cores_of_rank_ = share_out(ranks, nodes, cores_of(topology.get()));
  if (!binding.cores_of_rank_.empty()) binding.topology_ = std::move(topology);
  return binding;
}

int CoreBinding::core_count() {
  const Topology topology = load();
  return std::max(1, topology ? cores_of(topology.get()) : processor_count());
}

void CoreBinding::bind(int index) const noexcept {
  const bool by_core = hwloc_get_nbobjs_by_type(topology_.get(), HWLOC_OBJ_CORE) > 0;
  const Cores mine = cores_of_rank_[static_cast<size_t>(index)];
  hwloc_bitmap_t set = hwloc_bitmap_alloc();
  if (set == nullptr) return;
  for (int core = mine.first; core < mine.first + mine.count; ++core) {
    const hwloc_obj* const object =
        hwloc_get_obj_by_type(topology_.get(), by_core ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU, static_cast<unsigned>(core));
    if (object != nullptr) hwloc_bitmap_or(set, set, object->cpuset);
  }
  hwloc_set_cpubind(topology_.get(), set, HWLOC_CPUBIND_PROCESS);
  hwloc_bitmap_free(set);
}

}  // namespace ibcoll::run
