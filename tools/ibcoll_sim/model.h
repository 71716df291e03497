// SPDX-License-Identifier: BSD-3-Clause
// From the words of the command line to the simulated job, and to what selection knows of it.
#pragma once

#include "runtime/collectives/framework/algorithm.h"
#include "runtime/comm/placement.h"
#include "tools/ibcoll_sim/job.h"
#include "tools/ibcoll_sim/options.h"
#include "tools/oracle/call_layout.h"

namespace ibcoll::simulator {

// A job without chance. `nothing`: memory that stands for the buffers of all ranks; empty: they are there.
SimJobParams job_params(const Options& options, std::span<std::byte> nothing);
// The costs of that job in the terms of selection.
CostModel cost_model(const Options& options);
// The call with blocks of `bytes` bytes, or distributed around them.
oracle::CallParams call_params(const Options& options, uint64_t bytes);
// The facts that selection knows about every call on the team of all ranks.
Shape team_shape(const Options& options);

}  // namespace ibcoll::simulator
