// SPDX-License-Identifier: BSD-3-Clause
// Selection's view of pap_shm_direct, for pap_shm_lanes, which is compared with it.
#pragma once

#include "runtime/collectives/framework/algorithm.h"

namespace ibcoll::allgather::pap_shm_direct {

const char* why_not(const Shape& s);
double cost_us(const Shape& s, const CostModel& m);

}  // namespace ibcoll::allgather::pap_shm_direct
