// SPDX-License-Identifier: BSD-3-Clause
// How far apart two cores are: nanoseconds that a cache line takes from one to the other, median of batches. A virtual
// machine's host may move them, and with them every time that two ranks take; perf/compare looks before each launch.
//   ibcoll_core_distance
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr int kTrips = 200;  // there and back, in a batch
constexpr int kBatches = 21;

struct Line {
  alignas(64) std::atomic<int> turn = 0;
};

void bind(int cpu) {
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(cpu, &own);
  if (::sched_setaffinity(0, sizeof own, &own) == 0) return;
  fmt::print(stderr, "ibcoll_core_distance: core {} cannot be used\n", cpu);
  std::exit(1);
}

std::vector<int> allowed_cores() {
  cpu_set_t allowed;
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed)) cores.push_back(cpu);
  return cores;
}

// Waits until the line says `turn`, then says the next. Yields, as the other thread may have no core of its own just now.
void answer(std::atomic<int>& line, int turn) {
  for (int spins = 0; line.load(std::memory_order_acquire) != turn; ++spins)
    if (spins > 10'000) std::this_thread::yield();
  line.store(turn + 1, std::memory_order_release);
}

}  // namespace

int main() {
  const std::vector<int> cores = allowed_cores();
  if (cores.size() < 2) {
    fmt::print(stderr, "ibcoll_core_distance: this process may use one core only (taskset, cgroup)\n");
    return 1;
  }
  Line line;
  std::thread other([&] {
    bind(cores[1]);
    for (int i = 0; i < kBatches * kTrips; ++i) answer(line.turn, 2 * i + 1);
  });
  bind(cores[0]);
  std::array<double, kBatches> ways{};
  for (int batch = 0; batch < kBatches; ++batch) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = batch * kTrips; i < (batch + 1) * kTrips; ++i) answer(line.turn, 2 * i);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    ways[static_cast<size_t>(batch)] = took.count() / (2 * kTrips);
  }
  other.join();
  std::nth_element(ways.begin(), ways.begin() + kBatches / 2, ways.end());
  fmt::print("{:.0f}\n", ways[kBatches / 2]);
  return 0;
}
