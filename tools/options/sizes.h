// SPDX-License-Identifier: BSD-3-Clause
// The words of --bytes, for ibcoll_perf and ibcoll_sim.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ibcoll {

// MIN:MAX or one size, with suffixes K, M, G (1024 times more each): MIN, then `factor` times as much each time, and
// MAX at the end. Throws CLI::ValidationError, which names --bytes.
std::vector<uint64_t> parse_sizes(const std::string& range, uint64_t factor);

}  // namespace ibcoll
