// SPDX-License-Identifier: BSD-3-Clause
// The blocking shorthand of each collective, by the arguments of the general call.
#pragma once

#include "runtime/include/ibcoll.h"

namespace ibcoll::oracle {

// Scheme and algorithm are not among the arguments of a shorthand.
ibcoll_status_t blocking_call(ibcoll_team_t team, const ibcoll_collective_args_t& args);

}  // namespace ibcoll::oracle
