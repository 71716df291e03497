// SPDX-License-Identifier: BSD-3-Clause
// Which rank runs where.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "tools/ibcoll_run/hosts.h"

namespace ibcoll::run {

struct HostRanks {
  std::string host;
  std::vector<int> ranks;  // ascending
};

struct PlacementRules {
  std::optional<int> ranks = {};     // of the job; none: as many as the hosts offer
  std::optional<int> per_host = {};  // ranks on each host
  bool in_turn = false;              // rank i + 1 on the next host; else ranks of one host are consecutive
  bool oversubscribe = false;        // more ranks than slots
};

// Without `in_turn`: hosts with slots are filled in their order. Further ranks go, as evenly as possible, to the hosts
// without slots and then, with `oversubscribe`, to all hosts, up to their max_slots. Without `ranks`: every slot, and
// one rank on a host without. A host that gets no rank is left out. INVALID_ARGUMENT when the hosts offer too few
// slots.
Result<std::vector<HostRanks>> place_on_hosts(const std::vector<HostEntry>& hosts, const PlacementRules& rules);

// `total` in `parts` as even as possible, larger parts first: 5 in 2 -> 3, 2. parts >= 1.
std::vector<int> split_evenly(int total, int parts);

// The node text of each rank: "emulated-0", ... for `nodes` emulated nodes, consecutive or in turn. INVALID_ARGUMENT
// when nodes > ranks.
Result<std::vector<std::string>> emulated_nodes(int ranks, int nodes, bool in_turn = false);

}  // namespace ibcoll::run
