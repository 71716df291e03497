// SPDX-License-Identifier: BSD-3-Clause
// Which algorithm another library takes by default, in the names of ibcoll's algorithms.
#pragma once

#include <string>
#include <vector>

#include "runtime/collectives/framework/algorithm.h"

namespace ibcoll::simulator {

// "openmpi" (the fixed decisions of coll/tuned in Open MPI 4.1) and "mpich" (generic.json of MPICH 4.0, without its
// algorithms that know nodes).
const std::vector<std::string>& known_peers();
// "": ibcoll has none like it. What the library decides by sizes that not all ranks know is decided as for 0 bytes.
std::string peer_algorithm(const std::string& peer, ibcoll_collective_t collective, const Shape& shape,
                           bool user_operation);

}  // namespace ibcoll::simulator
