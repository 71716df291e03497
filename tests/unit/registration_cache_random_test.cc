// SPDX-License-Identifier: BSD-3-Clause
// Random uses, unmappings, remappings and shortages, checked against a registrar that knows the contents of every page.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "runtime/registration_cache/registration_cache.h"
#include "tests/unit/recording_registrar.h"

namespace ibcoll {
namespace {

class RandomUse {
 public:
  explicit RandomUse(uint32_t seed)
      : random_(seed),
        pages_(4 + below(200)),
        longest_(1 + below(30)),
        kept_from_(below(4) == 0 ? below(pages_) : 0),
        cache_(registrar_, options()) {
    registrar_.at_unpin = [this] {  // as free() does in a real one, now and then
      if (below(20) == 0) unmap();
    };
  }
  ~RandomUse() { registrar_.at_unpin = nullptr; }

  void run(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFatalFailure(); ++step) {
      switch (below(10)) {
        case 0:
        case 1:
          unmap();
          break;
        case 2:
        case 3:
        case 4:
          if (!used_.empty()) release(below(used_.size()));
          break;
        case 5:
          shortage_or_none();
          break;
        default:
          acquire();
      }
      check();
    }
    while (!used_.empty()) release(used_.size() - 1);
    cache_.collect();
    check();
    cache_.clear();
    EXPECT_EQ(registrar_.pinned(), 0U) << "left at the end";
    EXPECT_EQ(cache_.counters().regions, 0U);
    EXPECT_EQ(cache_.counters().pinned_bytes, 0U);
  }

 private:
  struct Use {
    Registration* registration;
    void* handle;
  };

  uint64_t below(uint64_t end) { return std::uniform_int_distribution<uint64_t>(0, end - 1)(random_); }

  RegistrationCache::Options options() {
    RegistrationCache::Options options;
    options.page_bytes = kPage;
    if (below(2) == 0) options.limit_bytes = below(3 * pages_) * kPage;
    if (below(2) == 0) options.limit_regions = below(20);
    if (kept_from_ > 0)
      options.keep = [this](std::span<const std::byte> memory) {
        return reinterpret_cast<uint64_t>(memory.data()) >= kBase + kept_from_ * kPage;
      };
    return options;
  }

  Interval any_range() {
    const uint64_t begin = kBase + below(pages_ * kPage);
    const uint64_t bytes = below(2) == 0 ? (1 + below(longest_)) * kPage : 1 + below(longest_ * kPage);
    return {below(2) == 0 ? begin : begin / kPage * kPage, begin + bytes};
  }

  void acquire() {
    const Interval range = any_range();
    const uint64_t failures = cache_.counters().failures;
    Result<Registration*> got = cache_.acquire({reinterpret_cast<std::byte*>(range.begin), range.size()});
    if (!got.ok()) {
      ASSERT_TRUE(short_) << got.status().text();
      ASSERT_EQ(got.status().code(), IBCOLL_ERR_NO_MEMORY);
      ASSERT_EQ(cache_.counters().failures, failures + 1);
      return;
    }
    ASSERT_TRUE(registrar_.current((*got)->handle(), range)) << "not pinned, or other pages, or not all of them";
    const std::span<std::byte> memory = (*got)->memory();
    ASSERT_LE(reinterpret_cast<uint64_t>(memory.data()), range.begin);
    ASSERT_GE(reinterpret_cast<uint64_t>(memory.data()) + memory.size(), range.end);
    used_.push_back({*got, (*got)->handle()});
  }

  void release(size_t index) {
    cache_.release(used_[index].registration);
    used_.erase(used_.begin() + static_cast<ptrdiff_t>(index));
  }

  void unmap() {
    const Interval range = any_range();
    cache_.invalidate(reinterpret_cast<void*>(range.begin), range.size());
    registrar_.remap(range);
  }

  void shortage_or_none() {
    short_ = below(3) == 0;
    registrar_.set_room(short_ ? below(2 * pages_) * kPage : ~uint64_t{0});
  }

  // Unmapped pages are given back as soon as no one uses them.
  void no_stale_pages() {
    cache_.collect();
    for (void* const handle : registrar_.stale())
      ASSERT_TRUE(std::any_of(used_.begin(), used_.end(), [&](const Use& use) { return use.handle == handle; }));
  }

  void check() {
    for (const Use& use : used_) {
      ASSERT_TRUE(registrar_.holds(use.handle)) << "unpinned while in use";
      ASSERT_EQ(use.registration->handle(), use.handle);
    }
    if (below(4) == 0) no_stale_pages();
    const RegistrationCache::Counters& count = cache_.counters();
    ASSERT_EQ(count.regions, registrar_.pinned());
    ASSERT_EQ(count.pinned_bytes, registrar_.pinned_bytes());
    if (!used_.empty()) return;
    ASSERT_LE(count.regions, cache_.options().limit_regions);
    ASSERT_LE(count.pinned_bytes, cache_.options().limit_bytes);
  }

  std::mt19937_64 random_;
  uint64_t pages_;
  uint64_t longest_;
  uint64_t kept_from_;  // below this page nothing is kept; 0: all is
  RecordingRegistrar registrar_;
  RegistrationCache cache_;
  std::vector<Use> used_;
  bool short_ = false;
};

TEST(RegistrationCacheRandom, EveryUseIsCoveredPinnedAndCurrent) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    RandomUse(seed).run(500);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
}

}  // namespace
}  // namespace ibcoll
