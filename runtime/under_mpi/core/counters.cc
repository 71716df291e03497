// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/core/counters.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>

namespace ibcoll::under_mpi {

struct AlgorithmCount {
  uint64_t calls = 0;
};

namespace {

struct Counters {
  std::atomic<uint64_t> ran{0};
  std::atomic<uint64_t> bytes{0};
  std::array<std::atomic<uint64_t>, kReasons> fell{};
};

std::array<Counters, kCollectives> all;
std::mutex algorithms_lock;
auto& algorithms = *new std::array<std::map<std::string, AlgorithmCount, std::less<>>, kCollectives>;

// Nobody decides by these: threads that count at the same time may lose a count, but an increment costs no locked
// instruction.
void add(std::atomic<uint64_t>& counter, uint64_t value) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
}

Counters& of(Collective collective) noexcept { return all[static_cast<size_t>(collective)]; }

std::string reasons(const Counters& counters) {
  std::string text;
  for (int i = 0; i < kReasons; ++i) {
    const uint64_t times = counters.fell[i].load(std::memory_order_relaxed);
    if (times > 0) text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", text_of(static_cast<Reason>(i)), times);
  }
  return text;
}

std::string algorithms_of(Collective collective) {
  const std::lock_guard guard(algorithms_lock);
  std::string text;
  for (const auto& [name, count] : algorithms[static_cast<size_t>(collective)]) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, count.calls);
  }
  return text;
}

}  // namespace

void count_ran(Collective collective, uint64_t bytes) noexcept {
  add(of(collective).ran, 1);
  add(of(collective).bytes, bytes);
}

AlgorithmCount* count_algorithm(Collective collective, const char* algorithm) noexcept {
  const std::lock_guard guard(algorithms_lock);
  auto& names = algorithms[static_cast<size_t>(collective)];
  auto found = names.find(std::string_view(algorithm));
  if (found == names.end()) found = names.emplace(algorithm, AlgorithmCount{}).first;
  ++found->second.calls;
  return &found->second;
}

void count_again(AlgorithmCount& algorithm) noexcept {
  const std::lock_guard guard(algorithms_lock);
  ++algorithm.calls;
}

void count_fell(Collective collective, Reason reason) noexcept {
  add(of(collective).fell[static_cast<size_t>(reason)], 1);
}

Counts counts_of(Collective collective) noexcept {
  const Counters& counters = of(collective);
  Counts counts = {counters.ran.load(std::memory_order_relaxed), counters.bytes.load(std::memory_order_relaxed), 0};
  for (const auto& fell : counters.fell) counts.fell += fell.load(std::memory_order_relaxed);
  return counts;
}

std::string report(int rank) {
  std::string lines;
  for (int i = 0; i < kCollectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    const Counts counts = counts_of(collective);
    if (counts.ran + counts.fell == 0) continue;
    const std::string ran_with = algorithms_of(collective);
    lines += fmt::format("ibcoll under MPI, rank {}: {} {} calls, {} bytes, {} in ibcoll", rank, name_of(collective),
                         counts.ran + counts.fell, counts.bytes, counts.ran);
    if (!ran_with.empty()) lines += fmt::format(" ({})", ran_with);
    lines += fmt::format(", {} fell through", counts.fell);
    if (counts.fell > 0) lines += fmt::format(" ({})", reasons(of(collective)));
    lines += "\n";
  }
  return lines;
}

}  // namespace ibcoll::under_mpi
