// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/sim/machine.h"

#include <algorithm>

namespace ibcoll::sim {

bool Machine::works(const void* to, const void* from, uint64_t bytes) noexcept {
  const Time start = std::max(network_.now(), network_.busy_until(running_));
  network_.charge(running_, bytes * network_.params().work_ps_per_byte / 1000);
  if (Observer* const observer = network_.observer())
    observer->works(running_, bytes, start, network_.busy_until(running_));
  return lands(to, from);
}

}  // namespace ibcoll::sim
