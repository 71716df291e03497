// SPDX-License-Identifier: BSD-3-Clause
// Which algorithm would run at which size, and why.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ibcoll.h"

namespace ibcoll::info {

struct Choice {
  uint64_t bytes = 0;
  std::string algorithm;  // empty: none; `reason` says why
  std::string reason;     // as ibcoll_explain gives it
};

// Asks for each size from `min` to `max` bytes, doubling. A barrier is asked once.
std::vector<Choice> choices(ibcoll_team_t team, ibcoll_collective_t collective, uint64_t min, uint64_t max);

// Neighbouring sizes with one algorithm become one entry, with the reasons at the smallest and the largest of them.
std::string selection_text(const std::vector<Choice>& choices);
nlohmann::json selection_json(const std::vector<Choice>& choices);

// Name and one line about every algorithm of a collective.
std::string algorithms_text(ibcoll_collective_t collective);
nlohmann::json algorithms_json(ibcoll_collective_t collective);

// 65536 -> "64K"
std::string size_text(uint64_t bytes);

}  // namespace ibcoll::info
