// SPDX-License-Identifier: BSD-3-Clause
// Replaces operator new of the process: one allocation of a thread is refused, as where memory has run out. What C
// libraries take by malloc() is given.
#pragma once

#include <cstdint>

namespace ibcoll::multiprocess {

// Refuses the n-th allocation that this thread makes from now on, from 1; 0: none.
void refuse_allocation(uint64_t nth);
// Since then one was refused.
bool allocation_refused();

// While there is one, allocations of this thread are given, and do not count.
class GivenMemory {
 public:
  GivenMemory();
  ~GivenMemory();
  GivenMemory(const GivenMemory&) = delete;
  GivenMemory& operator=(const GivenMemory&) = delete;

 private:
  uint64_t left_;
};

}  // namespace ibcoll::multiprocess
