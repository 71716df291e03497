// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <hwloc.h>

#include <memory>
#include <string>
#include <vector>

namespace ibcoll::run {

// Binds rank i of a host to its i-th core, when there are enough cores among the processors this process may use. When not,
// the emulated nodes share these out, as machines would not share theirs: each has as many of its own, or with so many others
// one together. Where that leaves something over, nothing is bound.
class CoreBinding {
 public:
  // `nodes[i]`: the emulated node of rank i, its ranks one after the other; empty: there are none. Looks at the machine only as far
  // as needed: reading the topology takes longer than starting a rank.
  static CoreBinding for_ranks(int ranks, const std::vector<std::string>& nodes);
  // Of each rank, of `cores` in all; empty: ranks are not bound.
  struct Cores {
    int first = 0, count = 1;
    bool operator==(const Cores&) const = default;
  };
  static std::vector<Cores> share_out(int ranks, const std::vector<std::string>& nodes, int cores);
  // Number of cores this process may use; at least 1.
  static int core_count();

  explicit operator bool() const { return topology_ != nullptr; }
  // Binds the calling process, which must have one thread, as rank `index` of the host.
  void bind(int index) const noexcept;

 private:
  struct Destroy {
    void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
  };
  using Topology = std::unique_ptr<hwloc_topology, Destroy>;
  static Topology load();

  Topology topology_;
  std::vector<Cores> cores_of_rank_;
};

}  // namespace ibcoll::run
