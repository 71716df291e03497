// SPDX-License-Identifier: BSD-3-Clause
// Measures a look-up in the registration cache. Run: ibcoll_registration_cache_benchmark --benchmark_repetitions=9
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "runtime/registration_cache/watched_cache.h"

namespace {

using namespace ibcoll;

constexpr uint64_t kBase = uint64_t{1} << 40;  // never touched
constexpr uint64_t kApart = uint64_t{1} << 20;
constexpr size_t kBytes = 65536;

class NoRegistrar : public Registrar {
 public:
  Result<void*> pin(std::span<std::byte> pages) override { return static_cast<void*>(pages.data()); }
  void unpin(void*) override {}
};

std::span<std::byte> region(uint64_t number) { return {reinterpret_cast<std::byte*>(kBase + number * kApart), kBytes}; }

template <typename Cache>
void fill(Cache& cache, size_t regions) {
  for (size_t i = 0; i < regions; ++i) cache.release(*cache.acquire(region(i)));
}

// The order in which the regions are used: 0, 1, 2, ... or any.
std::vector<std::span<std::byte>> uses(size_t regions, bool shuffled) {
  std::vector<std::span<std::byte>> all;
  for (size_t i = 0; i < regions; ++i) all.push_back(region(i).subspan(100, 50'000));
  if (shuffled) std::shuffle(all.begin(), all.end(), std::mt19937(1));
  return all;
}

// acquire() and release() of what is not in use by anyone else.
template <typename Cache>
void measure_hits(benchmark::State& state, Cache& cache, bool shuffled) {
  const auto regions = static_cast<size_t>(state.range(0));
  fill(cache, regions);
  const std::vector<std::span<std::byte>> order = uses(regions, shuffled);
  size_t next = 0;
  for (auto _ : state) {
    Result<Registration*> hit = cache.acquire(order[next]);
    benchmark::DoNotOptimize(hit);
    cache.release(*hit);
    if (++next == order.size()) next = 0;
  }
  if (cache.counters().misses != regions) state.SkipWithError("not all were hits");
}

void hit_in_order(benchmark::State& state) {
  NoRegistrar registrar;
  RegistrationCache cache(registrar, {});
  measure_hits(state, cache, false);
}
void hit_anywhere(benchmark::State& state) {
  NoRegistrar registrar;
  RegistrationCache cache(registrar, {});
  measure_hits(state, cache, true);
}
// As a transport calls it: with UCX's memory events.
void hit_anywhere_watched(benchmark::State& state) {
  ::setenv("UCX_MEM_EVENTS", "y", 0);  // or there are none with UCX before 1.15
  NoRegistrar registrar;
  WatchedCache cache(registrar, {true, uint64_t{1} << 40, 1'000'000});
  if (cache.scope() != WatchedCache::Scope::kAll) return state.SkipWithError(cache.reason().c_str());
  measure_hits(state, cache, true);
}

// Times an insertion and an eviction in the table, without the pinning itself.
void miss_and_evict(benchmark::State& state) {
  const auto regions = static_cast<size_t>(state.range(0));
  NoRegistrar registrar;
  RegistrationCache::Options options;
  options.limit_regions = regions;
  RegistrationCache cache(registrar, options);
  const std::vector<std::span<std::byte>> order = uses(2 * regions, true);
  size_t next = 0;
  for (auto _ : state) {
    cache.release(*cache.acquire(order[next]));
    if (++next == order.size()) next = 0;
  }
}

// One reported unmapping that concerns no region, and the acquire() that takes note of it.
void hit_after_unmapping(benchmark::State& state) {
  NoRegistrar registrar;
  RegistrationCache cache(registrar, {});
  fill(cache, static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    cache.invalidate(reinterpret_cast<void*>(kBase / 2), 4096);
    cache.release(*cache.acquire(region(5)));
  }
}

BENCHMARK(hit_in_order)->Arg(1)->Arg(100)->Arg(10'000);
BENCHMARK(hit_anywhere)->Arg(100)->Arg(10'000)->Arg(65'536);
BENCHMARK(hit_anywhere_watched)->Arg(10'000);
BENCHMARK(hit_after_unmapping)->Arg(10'000);
BENCHMARK(miss_and_evict)->Arg(100)->Arg(10'000)->Arg(65'536);

}  // namespace

BENCHMARK_MAIN();
