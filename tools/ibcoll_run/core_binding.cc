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

CoreBinding CoreBinding::for_ranks(int ranks) {
  CoreBinding binding;
  if (ranks > processor_count()) return binding;
  Topology topology = load();
  if (topology && ranks <= cores_of(topology.get())) binding.topology_ = std::move(topology);
  return binding;
}

int CoreBinding::core_count() {
  const Topology topology = load();
  return std::max(1, topology ? cores_of(topology.get()) : processor_count());
}

void CoreBinding::bind(int core) const noexcept {
  const bool by_core = hwloc_get_nbobjs_by_type(topology_.get(), HWLOC_OBJ_CORE) > 0;
  const hwloc_obj* object =
      hwloc_get_obj_by_type(topology_.get(), by_core ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU, static_cast<unsigned>(core));
  if (object != nullptr) hwloc_set_cpubind(topology_.get(), object->cpuset, HWLOC_CPUBIND_PROCESS);
}

}  // namespace ibcoll::run
