// SPDX-License-Identifier: BSD-3-Clause
// The order of the numbers of a team's calls, which begin anew after 2^32 - 1.
#pragma once

#include <cstdint>

namespace ibcoll {

// Call a comes after call b.
constexpr bool is_after(uint32_t a, uint32_t b) noexcept { return static_cast<int32_t>(a - b) > 0; }

}  // namespace ibcoll
