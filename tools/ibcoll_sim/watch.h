// SPDX-License-Identifier: BSD-3-Clause
// Over a long simulation: whether it fits into memory, how far it is, and whether the user has ended it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "runtime/base/status.h"
#include "tools/ibcoll_sim/job.h"
#include "tools/options/progress.h"

namespace ibcoll::simulator {

// Bytes that this process can still take, as far as the machine, its control groups and `ulimit -v` say.
uint64_t memory_available();

// Before anything is made: NO_MEMORY where `ranks` ranks and the `more` bytes of `what` ("the block sizes") do not fit
// into `available` bytes, with how many ranks do. Messages take memory on top of that, see Watch.
Status fits(int ranks, std::string_view what, uint64_t more, uint64_t available);

class Watch {
 public:
  // `expected_us`: of virtual time; 0: not known.
  explicit Watch(double expected_us);

  // To be called now and then. Fails with NO_MEMORY before the kernel ends the process, and with TIMEOUT after Ctrl-C.
  Status look(SimJob& job);

 private:
  ProgressLine line_;
  double expected_us_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point memory_seen_ = begin_;
};

// From now on the first SIGINT ends simulations by Watch::look(), and the second one the process.
void catch_interrupts();
bool interrupted();

}  // namespace ibcoll::simulator
