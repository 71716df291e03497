// SPDX-License-Identifier: BSD-3-Clause
// Barriers that others are composed of.
#pragma once

#include "runtime/collectives/framework/args.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/task.h"

namespace ibcoll::barrier::dissemination {

Task run(Comm& c, Args a);

}  // namespace ibcoll::barrier::dissemination
