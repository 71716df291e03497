// SPDX-License-Identifier: BSD-3-Clause
// Selection's view of pap_direct, for pap_shm_lanes, which is compared with it.
#pragma once

#include "runtime/collectives/framework/algorithm.h"

namespace ibcoll::alltoall::pap_direct {

double cost_us(const Shape& s, const CostModel& m);

}  // namespace ibcoll::alltoall::pap_direct
