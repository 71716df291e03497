// SPDX-License-Identifier: BSD-3-Clause
// One collective on p simulated ranks, with the oracle's buffers.
#pragma once

#include <string>
#include <vector>

#include "runtime/collectives/framework/algorithm.h"
#include "runtime/sim/random.h"
#include "tools/oracle/call_case.h"

namespace ibcoll {

using oracle::CallParams;

// Random parameters for a collective; blocks of at most `most` bytes, often of one of the sizes in `edges`.
CallParams random_case(sim::Random& random, ibcoll_collective_t collective, int p, uint64_t most,
                       const std::vector<uint64_t>& edges);

class CollectiveCase {
 public:
  CollectiveCase(CallParams params, uint64_t seed);

  const CallParams& params() const { return params_; }
  oracle::CallCase& at(int rank) { return ranks_[static_cast<size_t>(rank)]; }
  // Passed through the checks of the C interface.
  Result<Args> args(int rank);
  Shape shape();  // all but p's placement; throws where args(0) is refused

 private:
  CallParams params_;
  std::vector<oracle::CallCase> ranks_;
};

}  // namespace ibcoll
