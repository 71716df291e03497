// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <hwloc.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "tools/ibcoll_run/host.h"

namespace ibcoll::run {

// Binds the ranks of a host to cores or NUMA nodes, among the processors that this process may use. By default only
// where the ranks fill these: a core for each rank, or emulated nodes that share the cores out, as machines would not
// share theirs (each node has an equal number of its own, or shares one with an equal number of nodes).
class CoreBinding {
 public:
  // `nodes[i]`: the emulated node of rank i; empty: there are none. Looks at the machine only as far as needed: reading
  // the topology takes longer than starting a rank. INVALID_ARGUMENT: there are too few cores for what is asked for.
  // SYSTEM: the kernel binds none, though the user asked for it.
  static Result<CoreBinding> for_ranks(const Binding& wanted, int ranks, const std::vector<std::string>& nodes);
  // The cores of each rank, of `cores` in all; empty: ranks are not bound.
  struct Cores {
    int first = 0, count = 1;
    bool operator==(const Cores&) const = default;
  };
  static Result<std::vector<Cores>> share_out(const Binding& wanted, int ranks, const std::vector<std::string>& nodes,
                                              int cores);
  // The variables that would put the topology of another machine in place of this one's, and are ignored; else "".
  static std::string ignored_variables();
  // Number of cores this process may use; at least 1.
  static int core_count();

  // Binds the calling process, which must have one thread, as rank `index` of the host.
  void bind(int index) const noexcept;
  // "bound to cores 2-3 (processors 2,3,6,7)", "not bound (processors 0-7)"
  std::string describe(int index) const;

 private:
  struct Destroy {
    void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
  };
  struct Free {
    void operator()(hwloc_bitmap_s* set) const { hwloc_bitmap_free(set); }
  };
  using Topology = std::unique_ptr<hwloc_topology, Destroy>;
  using Set = std::unique_ptr<hwloc_bitmap_s, Free>;
  static Topology load();
  Set processors_of(int index) const;
  Status try_to_bind() const;

  Topology topology_;
  std::vector<hwloc_obj*> units_;  // cores (hardware threads where there are none) or NUMA nodes
  bool numa_ = false;
  std::vector<Cores> units_of_rank_;  // empty: not bound
};

}  // namespace ibcoll::run
