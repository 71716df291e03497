// SPDX-License-Identifier: BSD-3-Clause
// One call of one algorithm on a network without chance, for tests of what papers promise: rounds and messages.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/simulated/collective_case.h"
#include "tools/ibcoll_sim/job.h"

namespace ibcoll {

// A round is the time in which a link moves `bytes_per_round` bytes: messages have no start-up, and what a message
// carries leaves at once, without an advertisement. Each link sends one message and receives one at a time, so that
// virtual time counts the rounds of the longest chain of dependent messages.
struct OneCall {
  CallParams params;
  const char* algorithm = "";
  uint64_t parameter = 0;
  std::vector<int> node_of;  // empty: one rank per node
  uint64_t area_bytes = 65536;
  Time alpha_ns = 0;
  uint64_t bytes_per_round = 1;
  bool announced = false;  // every message waits until its receiver has said where it may land
};

struct OneCallResult {
  double rounds = 0;  // that all bytes took
  Time time = 0;
  sim::Counters counters;
};

OneCallResult run_one_call(const OneCall& call);

}  // namespace ibcoll
