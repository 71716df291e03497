// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/registration_cache/registration_cache.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/recording_registrar.h"

namespace ibcoll {
namespace {

// Addresses are never touched.
std::span<std::byte> memory(uint64_t offset, size_t bytes) {
  return {reinterpret_cast<std::byte*>(kBase + offset), bytes};
}
uint64_t begin_of(const Registration* registration) {
  return reinterpret_cast<uint64_t>(registration->memory().data()) - kBase;
}

class RegistrationCacheTest : public testing::Test {
 protected:
  void open(RegistrationCache::Options options = {}) {
    options.page_bytes = kPage;
    cache_ = std::make_unique<RegistrationCache>(registrar_, options);
  }
  void TearDown() override {
    cache_.reset();
    EXPECT_EQ(registrar_.pinned(), 0U) << "registrations left";
  }
  Registration* acquire(uint64_t offset, size_t bytes) {
    Result<Registration*> got = cache_->acquire(memory(offset, bytes));
    EXPECT_TRUE(got.ok()) << got.status().text();
    return got.ok() ? *got : nullptr;
  }
  void use(uint64_t offset, size_t bytes) { cache_->release(acquire(offset, bytes)); }
  void unmap(uint64_t offset, size_t bytes) { cache_->invalidate(reinterpret_cast<void*>(kBase + offset), bytes); }
  const RegistrationCache::Counters& count() const { return cache_->counters(); }

  RecordingRegistrar registrar_;
  std::unique_ptr<RegistrationCache> cache_;
};

TEST_F(RegistrationCacheTest, PinsWholePagesOnce) {
  open();
  Registration* const first = acquire(100, 10);
  EXPECT_EQ(begin_of(first), 0U);
  EXPECT_EQ(first->memory().size(), kPage);
  EXPECT_EQ(acquire(0, kPage), first);
  EXPECT_EQ(count().hits, 1U);
  cache_->release(first);
  cache_->release(first);
  use(kPage - 1, 2);  // two pages
  EXPECT_EQ(count().misses, 2U);
  EXPECT_EQ(count().merges, 1U) << "the single page is part of the two";
  EXPECT_EQ(count().pinned_bytes, 2 * kPage);
  EXPECT_EQ(registrar_.pins(), 2U);
}

TEST_F(RegistrationCacheTest, WhatIsNoMemoryIsAnError) {
  open();
  EXPECT_EQ(cache_->acquire({}).status().code(), IBCOLL_ERR_INVALID_ARGUMENT);
  use(0, 10);
  EXPECT_EQ(cache_->acquire(memory(0, 0)).status().code(), IBCOLL_ERR_INVALID_ARGUMENT);
  const std::span<std::byte> wraps{reinterpret_cast<std::byte*>(~uint64_t{100}), 1000};
  EXPECT_EQ(cache_->acquire(wraps).status().code(), IBCOLL_ERR_INVALID_ARGUMENT);
}

TEST_F(RegistrationCacheTest, OldOnesStayUntilTheirLastUse) {
  open();
  Registration* const small = acquire(4 * kPage, kPage);
  Registration* const large = acquire(0, 16 * kPage);
  EXPECT_NE(small, large);
  EXPECT_EQ(registrar_.pinned(), 2U);
  EXPECT_EQ(acquire(4 * kPage, kPage), large);
  cache_->release(small);
  EXPECT_EQ(registrar_.pinned(), 1U) << "the small one has left with its last use";
  cache_->release(large);
  cache_->release(large);
}

TEST_F(RegistrationCacheTest, ASlidingWindowMergesAndNeighboursDoNot) {
  open();
  for (uint64_t page = 0; page < 100; ++page) use(page * kPage, 10 * kPage);
  EXPECT_LE(count().pinned_bytes, 3 * 109 * kPage) << "without merging it is ten times the pages in use";
  for (uint64_t page = 0; page < 100; ++page) use(page * kPage, 10 * kPage);
  EXPECT_EQ(count().hits, 100U);
  cache_->clear();
  const uint64_t merges = count().merges;
  for (uint64_t block = 0; block < 20; ++block) use(block * 100'000, 100'000);  // share the page at their border
  EXPECT_EQ(count().merges, merges);
  EXPECT_LE(count().pinned_bytes, 20 * 100'000 + 20 * 2 * kPage);
}

TEST_F(RegistrationCacheTest, TheLeastRecentlyUsedGoesFirst) {
  open({.limit_bytes = 4 * kPage, .keep = {}});
  for (uint64_t i = 0; i < 4; ++i) use(2 * i * kPage, kPage);
  use(0, kPage);  // now 2 is the oldest
  use(100 * kPage, kPage);
  EXPECT_EQ(count().evictions, 1U);
  const uint64_t hits = count().hits;
  for (uint64_t page : {0, 4, 6}) use(page * kPage, kPage);
  EXPECT_EQ(count().hits, hits + 3);
  use(2 * kPage, kPage);
  EXPECT_EQ(count().hits, hits + 3);
}

TEST_F(RegistrationCacheTest, LimitsHoldForWhatIsNotInUse) {
  open({.limit_bytes = 10 * kPage, .limit_regions = 3, .keep = {}});
  std::vector<Registration*> used;
  for (uint64_t i = 0; i < 6; ++i) used.push_back(acquire(10 * i * kPage, 3 * kPage));
  EXPECT_EQ(count().regions, 6U) << "in use";
  for (Registration* one : used) cache_->release(one);
  EXPECT_EQ(count().regions, 3U);
  EXPECT_LE(count().pinned_bytes, 10 * kPage);
  const uint64_t evictions = count().evictions;
  use(0, 50 * kPage);
  EXPECT_EQ(count().evictions, evictions) << "what cannot be kept drives nothing out";
}

TEST_F(RegistrationCacheTest, MergingStaysWithinTheLimit) {
  open({.limit_bytes = 12 * kPage, .keep = {}});
  use(0, 10 * kPage);
  use(5 * kPage, 10 * kPage);  // 15 pages together
  EXPECT_EQ(count().pinned_bytes, 10 * kPage);
  use(5 * kPage, 10 * kPage);
  EXPECT_EQ(count().hits, 1U);
}

TEST_F(RegistrationCacheTest, NothingIsShortWhereOnlyTheMergedRangeFails) {
  open();
  registrar_.set_room(12 * kPage);
  use(0, 10 * kPage);
  use(5 * kPage, 10 * kPage);  // 15 pages together
  EXPECT_EQ(count().shortages, 0U);
  Registration* const all = acquire(100 * kPage, 11 * kPage);
  EXPECT_EQ(count().shortages, 1U) << "what was unused had to go";
  EXPECT_FALSE(cache_->acquire(memory(200 * kPage, 2 * kPage)).ok());
  EXPECT_EQ(count().shortages, 2U);
  EXPECT_EQ(count().failures, 1U);
  cache_->release(all);
}

// At most half as large again as what is asked for.
TEST_F(RegistrationCacheTest, MergesAddHalfAtMost) {
  open();
  use(0, 10 * kPage);
  use(5 * kPage, 10 * kPage);
  EXPECT_EQ(count().pinned_bytes, 15 * kPage);
  cache_->clear();
  use(0, 10 * kPage);
  use(6 * kPage, 10 * kPage);
  EXPECT_EQ(count().pinned_bytes, 20 * kPage);
}

TEST_F(RegistrationCacheTest, RoomIsMadeBeforeItIsNeeded) {
  open({.limit_regions = 2, .keep = {}});
  use(0, kPage);
  use(10 * kPage, kPage);
  Registration* const third = acquire(20 * kPage, kPage);
  EXPECT_EQ(registrar_.pinned(), 2U);
  cache_->release(third);
}

TEST_F(RegistrationCacheTest, AShortageEvictsAndTriesOnceMore) {
  open();
  for (uint64_t i = 0; i < 3; ++i) use(10 * i * kPage, 2 * kPage);
  Registration* const used = acquire(100 * kPage, 2 * kPage);
  registrar_.set_room(9 * kPage);
  Registration* const large = acquire(200 * kPage, 7 * kPage);
  EXPECT_EQ(count().evictions, 3U);
  const Result<Registration*> refused = cache_->acquire(memory(300 * kPage, 2 * kPage));
  EXPECT_EQ(refused.status().code(), IBCOLL_ERR_NO_MEMORY);
  EXPECT_NE(refused.status().text().find("8192 bytes at"), std::string::npos) << refused.status().text();
  EXPECT_NE(refused.status().text().find("36864 bytes in 2 regions"), std::string::npos) << refused.status().text();
  cache_->release(used);
  cache_->release(large);
  use(300 * kPage, 2 * kPage);
  EXPECT_EQ(count().failures, 1U);
}

TEST_F(RegistrationCacheTest, WhatCannotBePinnedTogetherIsPinnedAlone) {
  open();
  use(100 * kPage, kPage);
  use(0, 10 * kPage);
  registrar_.refuse_across(5 * kPage + kBase);  // as between mappings of different kinds
  Registration* const alone = acquire(5 * kPage, 10 * kPage);
  EXPECT_EQ(begin_of(alone), 5 * kPage);
  EXPECT_EQ(count().evictions, 0U) << "there was no shortage";
  cache_->release(alone);
}

TEST_F(RegistrationCacheTest, AnUnmappedPageEndsARegistration) {
  open();
  use(0, 4 * kPage);
  use(10 * kPage, kPage);
  unmap(3 * kPage, kPage);
  cache_->collect();
  EXPECT_EQ(registrar_.pinned(), 1U);
  EXPECT_EQ(count().invalidations, 1U);
  use(0, 4 * kPage);
  EXPECT_EQ(registrar_.pins(), 3U) << "pinned again";
}

TEST_F(RegistrationCacheTest, InUseItLeavesAtOnceAndIsUnpinnedLater) {
  open();
  Registration* const old = acquire(0, kPage);
  unmap(0, 1);
  Registration* const fresh = acquire(0, kPage);
  EXPECT_NE(old, fresh);
  EXPECT_NE(old->handle(), fresh->handle());
  EXPECT_EQ(registrar_.pinned(), 2U);
  cache_->release(old);
  EXPECT_EQ(registrar_.pinned(), 1U);
  cache_->release(fresh);
  EXPECT_EQ(acquire(0, kPage), fresh);
  cache_->release(fresh);
}

TEST_F(RegistrationCacheTest, TooManyUnmappingsCountAsAll) {
  open();
  for (uint64_t i = 0; i < 100; ++i) use(2 * i * kPage, kPage);
  for (uint64_t i = 0; i < 5000; ++i) unmap((1000 + i) * kPage, kPage);
  unmap(0, kPage);
  cache_->collect();
  EXPECT_EQ(registrar_.pinned(), 0U);
  use(0, kPage);
  EXPECT_EQ(count().regions, 1U);
}

TEST_F(RegistrationCacheTest, MemoryThatMustNotBeKeptIsPinnedForEachUse) {
  open({.keep = [](std::span<const std::byte> range) {
    return reinterpret_cast<uint64_t>(range.data()) >= kBase + 100 * kPage;
  }});
  Registration* const first = acquire(0, kPage);
  Registration* const second = acquire(0, kPage);
  EXPECT_NE(first, second);
  cache_->release(first);
  cache_->release(second);
  EXPECT_EQ(registrar_.pinned(), 0U);
  use(100 * kPage, kPage);
  use(100 * kPage, kPage);
  EXPECT_EQ(count().hits, 1U);
  EXPECT_EQ(registrar_.pins(), 3U);
}

TEST_F(RegistrationCacheTest, AnUnmappingInsideUnpinIsNotLost) {
  open();
  use(0, kPage);
  use(10 * kPage, kPage);
  registrar_.at_unpin = [&] {  // as free() of the registrar would
    registrar_.at_unpin = nullptr;
    unmap(10 * kPage, kPage);
  };
  unmap(0, kPage);
  cache_->collect();
  EXPECT_EQ(registrar_.pinned(), 0U);
}

}  // namespace
}  // namespace ibcoll
