// SPDX-License-Identifier: BSD-3-Clause
// Shared by the algorithms of scan and exscan.
#pragma once

#include "runtime/collectives/framework/algorithm.h"
#include "runtime/collectives/framework/pieces.h"

namespace ibcoll::scan::recursive_doubling {

// Combines a piece among the ranks of c. `upto`: this rank's operand, and in the end the result over ranks 0 to its
// own. `below`: gets the result over the ranks below it, but on rank 0; empty: not wanted. `work`: as long as `upto`.
Task among(Comm& c, Reduction reduction, Bytes upto, Bytes below, std::byte* work);
// The time of one call, whose rounds come one after the other.
double rounds_us(const Shape& s, const CostModel& m);

}  // namespace ibcoll::scan::recursive_doubling
