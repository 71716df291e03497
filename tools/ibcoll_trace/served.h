// SPDX-License-Identifier: BSD-3-Clause
// Single calls: when each rank arrived, and when it served its peers.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/traces/trace.h"

namespace ibcoll::tracing {

// The recorded calls whose ranks arrived furthest apart, in the order in which they were made.
std::vector<const Call*> furthest_apart(const TracedJob& job, size_t most);
std::string served_text(const Call& call);
nlohmann::ordered_json served_json(const Call& call);

}  // namespace ibcoll::tracing
