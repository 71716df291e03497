// SPDX-License-Identifier: BSD-3-Clause
// Host, process, cores and memory of each rank, collected over ibcoll itself.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "ibcoll.h"

namespace ibcoll::info {

// rank, host, pid, cores (that it may run on), private_bytes (resident and not shared).
nlohmann::json own_facts(int rank);

// Collective. The facts of all ranks, in rank order. False: `failure` says why.
bool gather_facts(ibcoll_team_t team, nlohmann::json& ranks, std::string& failure);

// One line per rank.
std::string facts_text(const nlohmann::json& ranks);

}  // namespace ibcoll::info
