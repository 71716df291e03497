// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "runtime/base/status.h"

namespace ibcoll {

// BOOTSTRAP: variables of a launcher say that this process is one of several ranks. Where it offers no bootstrap, each
// of them would be a job of its own, and n jobs of one rank give wrong results without an error.
Status check_that_rank_is_alone();

}  // namespace ibcoll
