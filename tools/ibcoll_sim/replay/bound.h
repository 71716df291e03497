// SPDX-License-Identifier: BSD-3-Clause
// How long a rank has to stay in a call on a machine, whatever the algorithm.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/comm/placement.h"
#include "tools/ibcoll_sim/options.h"
#include "tools/ibcoll_sim/replay/recording.h"
#include "tools/oracle/call_layout.h"

namespace ibcoll::simulator {

// The bound of one kind of call.
class Bound {
 public:
  Bound(const Options& machine, const Placement& placement, oracle::CallParams params);
  // The sum over the ranks of the shortest times after the last arrival, in ns: until what a rank needs from the rank that
  // arrived last can be there, and, from the first arrival on, until the bytes that it needs from other nodes can have
  // passed its port. `moments`: by team rank.
  double after_last_ns(std::span<const Moments> moments) const;

 private:
  double needs_ns(int last, int rank) const;

  const Options& machine_;
  const Placement& placement_;
  oracle::CallParams params_;
  std::vector<double> whole_ns_;  // by team rank: a message and its bytes from other nodes; 0: there are none
};

}  // namespace ibcoll::simulator
