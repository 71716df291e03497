// SPDX-License-Identifier: BSD-3-Clause
// The actions of a simulator instead of the processor, so that the work of a rank takes virtual time. Programs have
// no simulation: for them each check below costs one load and a branch that is always predicted.
#pragma once

#include <atomic>
#include <cstdint>

namespace ibcoll {

class Simulation {
 public:
  virtual ~Simulation() = default;
  // The running rank copies, or goes through operands: that takes time. True: nothing shall move.
  virtual bool works(const void* to, const void* from, uint64_t bytes) noexcept = 0;
  // A message that has landed is copied to its buffer, which is part of its time. True: nothing shall move.
  virtual bool lands(const void* to, const void* from) noexcept = 0;
  // The running rank sets a flag that others poll: after the time of all that it has done before.
  virtual void sets(std::atomic<uint64_t>& flag, uint64_t value) noexcept = 0;

  // nullptr: there is none.
  static inline constinit Simulation* current = nullptr;
};

// True: a simulation has done the copy.
inline bool work_is_simulated(const void* to, const void* from, uint64_t bytes) noexcept {
  return Simulation::current && Simulation::current->works(to, from, bytes);
}
// A rank that has come at last copies what was kept for it: that is not part of the time of a message.
inline void simulate_copy_of(const void* kept, uint64_t bytes) noexcept { (void)work_is_simulated(kept, kept, bytes); }
inline bool landing_is_simulated(const void* to, const void* from) noexcept {
  return Simulation::current && Simulation::current->lands(to, from);
}

}  // namespace ibcoll
