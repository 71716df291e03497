// SPDX-License-Identifier: BSD-3-Clause
// Parsers of single words of ibcoll_sim's command line. All throw CLI::ValidationError, which names the option.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/ibcoll_sim/options.h"

namespace ibcoll::simulator {

inline constexpr double kMostUs = 1e6;  // of any time

// The words of a list, empty ones as well.
std::vector<std::string> words_of(const std::string& list, char separator);
// --arrival
Arrival parse_arrival(const std::string& text, int ranks);
uint64_t parse_one_size(const char* option, const std::string& text, uint64_t least, uint64_t most);

}  // namespace ibcoll::simulator
