// SPDX-License-Identifier: BSD-3-Clause
// The loop of --arrival, written once for ibcoll and for the libraries it is compared with: barrier, delay, call.
//
// The barrier agrees on an instant of the common clock, a little ahead; each rank enters the call its delay after that
// instant. So the order in which ranks leave a library's barrier, and how long it takes, are no part of the pattern,
// and each library gets the same one. The agreement is a maximum over all ranks, so no rank knows it before all ranks
// have arrived.
#pragma once

#include <sys/prctl.h>

#include <cerrno>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "perf/arrival/figures.h"
#include "perf/arrival/pattern.h"
#include "perf/timed_loop.h"

namespace ibcoll::perf {

// Until CLOCK_MONOTONIC, in microseconds, is there.
inline void wait_until(double deadline_us, bool sleeps) {
  if (!sleeps) {
    while (now_us() < deadline_us) {
    }
    return;
  }
  const auto seconds = static_cast<time_t>(deadline_us / 1e6);
  const timespec when{seconds, static_cast<long>((deadline_us - static_cast<double>(seconds) * 1e6) * 1e3)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, nullptr) == EINTR) {
  }
}

struct ArrivalRun {
  const ArrivalPattern& pattern;
  double message_us = 0;  // T
  int rank = 0, ranks = 1;
  bool sleeps = false;
  double offset_us = 0;  // from this rank's clock to the common one
  uint64_t first = 0;    // the call of the pattern with which warm-up begins, and again the timed calls
};

// Leaves arrival and exit of each timed call, on the common clock, in `stamps`. `before(i)` and `after(i)` surround
// call i outside the time. `library`: as run_timed_loop() has it, and `bool progress()`, which lets the library send
// and receive, and does not wait.
template <typename Library, typename Before, typename After>
bool run_arrival_loop(Library& library, const LoopPlan& plan, const ArrivalRun& run, Before before, After after,
                      std::vector<double>& stamps) {
  constexpr double kLeastAhead = 20, kMostAhead = 20e3, kNap = 100;
  if (run.sleeps) (void)prctl(PR_SET_TIMERSLACK, 1UL);  // nanoseconds; the usual 50 us would be added to each delay
  double ahead = run.sleeps ? 500 : 50;                 // from the agreement to the first arrival
  uint64_t number = 0;
  double slowest_agreement = 0;
  const auto once = [&](bool timed) {
    before(number);
    const double asked = now_us() + run.offset_us;
    double agreed = asked;
    if (!library.largest(agreed)) return false;
    slowest_agreement = std::max(slowest_agreement, now_us() + run.offset_us - agreed);
    const double delay = arrival_delay(run.pattern, run.first + number, run.rank, run.ranks, run.message_us);
    const double start = agreed + ahead - run.offset_us;
    // What the barrier still has to send leaves before the delays begin: a library may send only while it is called.
    do {
      if (!library.progress()) return false;
      if (run.sleeps) wait_until(std::min(start, now_us() + kNap), true);
    } while (now_us() < start);
    wait_until(start + delay, run.sleeps);
    const double arrived = now_us() + run.offset_us;
    if (!library.call()) return false;
    const double left = now_us() + run.offset_us;
    if (timed) stamps.insert(stamps.end(), {arrived, left});
    after(number++);
    return true;
  };
  stamps.clear();
  const int64_t warmup = plan.warmup < 0 ? 3 : plan.warmup;
  double begin = now_us();
  for (int64_t i = 0; i < warmup; ++i) {
    if (i == 1) begin = now_us(), slowest_agreement = 0;  // the first call connects and touches memory
    if (!once(false)) return false;
  }
  double round_us = warmup < 2 ? plan.budget_us / 10 : (now_us() - begin) / static_cast<double>(warmup - 1);
  if (!library.largest(round_us) || !library.largest(slowest_agreement)) return false;
  if (warmup >= 2) ahead = std::clamp(2 * slowest_agreement, kLeastAhead, kMostAhead);
  const uint64_t wanted = plan.iterations > 0 ? plan.iterations : iterations_for(round_us, plan.budget_us);
  stamps.reserve(2 * wanted);
  number = 0;
  for (uint64_t i = 0; i < wanted; ++i)
    if (!once(true)) return false;
  return true;
}

}  // namespace ibcoll::perf
