// SPDX-License-Identifier: BSD-3-Clause
// The meaning of the options for one collective at one size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "perf/ibcoll_perf/options.h"
#include "tools/oracle/call_layout.h"

namespace ibcoll::perf {

// Sizes of the rows of a collective: 0 alone where no data moves; rounded up to whole elements of --type in reductions.
std::vector<uint64_t> sizes_of(const Options& options, const Collective& row);

// The type of reductions: --type, else the widest that divides `bytes`: floating point, or integers where needed.
ibcoll_type_t element_type(const Options& options, uint64_t bytes);
// --distribution, else ragged where bytes are verified and mild where they are timed.
oracle::Distribution distribution_of(const Options& options);

// One call of the collective on `ranks` ranks, with `bytes` of a block; algorithm and data are not chosen here.
oracle::CallParams call_params(const Options& options, const Collective& row, int ranks, uint64_t bytes);

}  // namespace ibcoll::perf
