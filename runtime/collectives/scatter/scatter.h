// SPDX-License-Identifier: BSD-3-Clause
// How blocks move down the trees of gather/tree.h.
#pragma once

#include "runtime/collectives/gather/tree.h"

namespace ibcoll::scatter {

// Blocks of this unit, neighbours in rank order, come from the root. Not on the root.
Task receive_down(Comm& c, gather::Trees trees, gather::CubeData about, Bytes own);
// All units' blocks go from the root, but for its own unit's. `team`: where ranks are a.send's.
Task distribute(Comm& c, gather::Trees trees, Args a, Comm* team);

}  // namespace ibcoll::scatter
