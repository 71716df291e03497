// SPDX-License-Identifier: BSD-3-Clause
// All algorithms, in the order in which tools list them.
#pragma once

#include <span>
#include <string_view>

#include "runtime/collectives/framework/algorithm.h"

namespace ibcoll {

std::span<const Algorithm* const> algorithms();
// nullptr: there is none of that name (without parameter) for the collective.
const Algorithm* find_algorithm(ibcoll_collective_t collective, std::string_view name);

}  // namespace ibcoll
