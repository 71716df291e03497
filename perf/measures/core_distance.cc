// SPDX-License-Identifier: BSD-3-Clause
// How far apart two cores are: nanoseconds that a cache line takes from one to the other, median of batches. A virtual
// machine's host may move them, and with them every time that two ranks take; perf/compare looks before each launch.
//   ibcoll_core_distance
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "perf/call_times.h"
#include "perf/measures/cores.h"

namespace {

constexpr int kTrips = 200;  // there and back, in a batch
constexpr int kBatches = 21;

struct Line {
  alignas(64) std::atomic<int> step = 0;
};

void bind(int cpu) {
  if (ibcoll::perf::bind_to(cpu)) return;
  fmt::print(stderr, "ibcoll_core_distance: core {} cannot be used\n", cpu);
  std::exit(1);
}

// Waits until the line has `step`, then writes the next. Yields, because the other thread may have no core of its own
// at the moment.
void answer(std::atomic<int>& line, int step) {
  for (int spins = 0; line.load(std::memory_order_acquire) != step; ++spins)
    if (spins > 10'000) std::this_thread::yield();
  line.store(step + 1, std::memory_order_release);
}

}  // namespace

int main() {
  const std::vector<int> cores = ibcoll::perf::allowed_cores();
  if (cores.size() < 2) {
    fmt::print(stderr, "ibcoll_core_distance: this process may use one core only (taskset, cgroup)\n");
    return 1;
  }
  Line line;
  std::thread other([&] {
    bind(cores[1]);
    for (int i = 0; i < kBatches * kTrips; ++i) answer(line.step, 2 * i + 1);
  });
  bind(cores[0]);
  std::array<double, kBatches> ways{};
  for (int batch = 0; batch < kBatches; ++batch) {
    const double begin = ibcoll::perf::now_us();
    for (int i = batch * kTrips; i < (batch + 1) * kTrips; ++i) answer(line.step, 2 * i);
    ways[static_cast<size_t>(batch)] = (ibcoll::perf::now_us() - begin) * 1e3 / (2 * kTrips);
  }
  other.join();
  std::nth_element(ways.begin(), ways.begin() + kBatches / 2, ways.end());
  fmt::print("{:.0f}\n", ways[kBatches / 2]);
  return 0;
}
