// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <hwloc.h>

#include <memory>

namespace ibcoll::run {

// Binds rank i of a host to its i-th core, when there are enough cores among the processors this process may use.
class CoreBinding {
 public:
  // Looks at the machine only as far as needed: reading the topology takes longer than starting a rank.
  static CoreBinding for_ranks(int ranks);
  // Number of cores this process may use; at least 1.
  static int core_count();

  explicit operator bool() const { return topology_ != nullptr; }
  // Binds the calling process, which must have one thread.
  void bind(int core) const noexcept;

 private:
  struct Destroy {
    void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
  };
  using Topology = std::unique_ptr<hwloc_topology, Destroy>;
  static Topology load();

  Topology topology_;
};

}  // namespace ibcoll::run
