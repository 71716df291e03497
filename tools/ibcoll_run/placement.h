// SPDX-License-Identifier: BSD-3-Clause
// Which rank runs where. Ranks of one host, and of one emulated node, are consecutive.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "tools/ibcoll_run/hosts.h"

namespace ibcoll::run {

struct HostRanks {
  std::string host;
  int first_rank;
  int count;
};

// Fills the hosts in their order. With `ranks`: hosts with slots take up to so many; what is left over goes, as evenly
// as possible, to the hosts without. Without `ranks`: every slot, and one rank on a host without.
// A host that gets no rank is left out. INVALID_ARGUMENT when the hosts offer too few slots.
Result<std::vector<HostRanks>> place_on_hosts(const std::vector<HostEntry>& hosts, std::optional<int> ranks);

// `total` in `parts` as even as possible, larger parts first: 5 in 2 -> 3, 2. parts >= 1.
std::vector<int> split_evenly(int total, int parts);

// The node text of each rank: "emulated-0", ... for `nodes` emulated nodes. INVALID_ARGUMENT when nodes > ranks.
Result<std::vector<std::string>> emulated_nodes(int ranks, int nodes);

}  // namespace ibcoll::run
