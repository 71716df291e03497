// SPDX-License-Identifier: BSD-3-Clause
// How unevenly ranks arrive at a collective. Source of the two factors: A. Faraj, P. Patarasuk, X. Yuan, "A Study of
// Process Arrival Patterns for MPI Collective Operations", International Journal of Parallel Programming 36, 2008.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace apps {

// The times of one rank in one call, in microseconds of a clock that all ranks share.
struct Visit {
  double arrival = 0, exit = 0;
};

struct Imbalance {
  double average = 0;     // mean distance of an arrival from the mean arrival
  double worst = 0;       // from the first arrival to the last one
  double in_call = 0;     // mean time in the call
  double after_last = 0;  // from the last arrival to the last exit
};

// `visits`: of one call, one for each rank; not empty.
inline Imbalance imbalance(const std::vector<Visit>& visits) {
  const auto ranks = static_cast<double>(visits.size());
  double sum = 0, last_exit = visits[0].exit, first = visits[0].arrival, last = first;
  Imbalance result;
  for (const Visit& visit : visits) {
    sum += visit.arrival;
    result.in_call += (visit.exit - visit.arrival) / ranks;
    first = std::min(first, visit.arrival);
    last = std::max(last, visit.arrival);
    last_exit = std::max(last_exit, visit.exit);
  }
  for (const Visit& visit : visits) result.average += std::abs(visit.arrival - sum / ranks) / ranks;
  result.worst = last - first;
  result.after_last = last_exit - last;
  return result;
}

}  // namespace apps
