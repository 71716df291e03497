// SPDX-License-Identifier: BSD-3-Clause
// Unmappings reported by threads that do not own the cache.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "runtime/registration_cache/registration_cache.h"
#include "tests/unit/recording_registrar.h"

namespace ibcoll {
namespace {

// Addresses are never touched.
std::span<std::byte> page_of(int thread) {
  return {reinterpret_cast<std::byte*>((uint64_t{1} << 40) + static_cast<uint64_t>(thread) * 10 * kPage), kPage};
}

TEST(RegistrationCacheThreads, UnmappingsAreSeenOnceTheyReturned) {
  RecordingRegistrar registrar;
  RegistrationCache cache(registrar, {});
  constexpr int kThreads = 3;
  constexpr uint64_t kRounds = 20'000;
  std::atomic<uint64_t> begun[kThreads] = {};
  std::atomic<uint64_t> returned[kThreads] = {};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (uint64_t i = 1; i <= kRounds; ++i) {
        begun[t].store(i);
        cache.invalidate(page_of(t).data(), kPage);
        returned[t].store(i);
      }
    });
  uint64_t begun_before[kThreads] = {};  // when the handle was looked up
  void* handles[kThreads] = {};
  for (bool running = true; running;) {
    running = false;
    for (int t = 0; t < kThreads; ++t) {
      const uint64_t now = returned[t].load();
      Registration* const got = *cache.acquire(page_of(t));
      if (now > begun_before[t]) {
        EXPECT_NE(got->handle(), handles[t]) << "pinned before an unmapping that has returned";
      }
      handles[t] = got->handle();
      cache.release(got);
      begun_before[t] = begun[t].load();
      running = running || now < kRounds;
    }
  }
  for (std::thread& thread : threads) thread.join();
  cache.collect();
}

}  // namespace
}  // namespace ibcoll
