// SPDX-License-Identifier: BSD-3-Clause
// Windows that stay bound between two exposures of the same memory to the same peer.
#include "runtime/machine/user_memory.h"
#include "runtime/registration_cache/memlock.h"
#include "tests/fake_verbs/faulty.h"
#include "tests/fake_verbs/job.h"

namespace ibcoll::fake_verbs {
namespace {

constexpr uint64_t kEnough = 8 << 20;  // bytes that may be locked

// Rank 1 exposes the same memory to rank 0 again and again, in between the window rests.
class RestTest : public FaultTest {
 protected:
  static constexpr size_t kBytes = 100'000;
  void SetUp() override {
    if (memlock_limit() < kEnough) GTEST_SKIP() << "where little memory may be locked, no window rests";
    const Result<void*> made = allocate_memory(kBytes);  // whose end is known, so that it stays pinned
    ASSERT_TRUE(made.ok());
    memory_ = {static_cast<std::byte*>(made.value()), kBytes};
    source_.resize(kBytes);
    open({"IBCOLL_VERBS_WINDOWS=on"});
  }
  void open(std::vector<const char*> settings) {
    world_.reset();
    begin(conformance::test_seed());
    world_ = make_connected(2, std::move(settings));
    ASSERT_TRUE(world_);
    drain(*world_);
    before_ = rank(1).counts;
  }
  void TearDown() override {
    if (world_) world_->at(1).end_rests();
    world_.reset();
    (void)free_memory(memory_.data());
  }
  void put_and_rest(std::span<std::byte> memory) {
    region_ = world_->at(1).expose(0, memory);
    ASSERT_NE(region_.key, 0u);
    fill(std::span(source_).first(memory.size()), ++puts_);
    world_->got(1).clear();
    ASSERT_TRUE(world_->put(0, 1, region_, std::span(source_).first(memory.size()), numbered(puts_)));
    ASSERT_TRUE(world_->pump_until([&] { return world_->messages(1, 0) == 1; }));
    EXPECT_EQ(first_wrong(memory, puts_), memory.size());
    ASSERT_TRUE(world_->at(1).rest(0, region_));
  }
  // That is no more: it writes nothing.
  void put_in_vain(const RemoteRegion& region) {
    const int64_t refused = world_->counter(0, "puts_refused");
    fill(source_, 99);
    ASSERT_TRUE(world_->put(0, 1, region, source_, numbered(99)));
    ASSERT_TRUE(world_->pump_until([&] { return world_->counter(0, "puts_refused") == refused + 1; }));
    EXPECT_EQ(first_wrong(memory_, puts_), kBytes);
  }
  // Nothing can be registered before rank 1 has ended so many windows.
  void lack_memory_until_ended(uint64_t windows) {
    const uint64_t& ended = rank(1).counts.requests[IBV_WR_LOCAL_INV];
    rank(1).faults.reg_mr = [&ended, enough = ended + windows](size_t, int) { return ended < enough ? ENOMEM : 0; };
  }
  uint64_t binds() const { return (rank(1).counts - before_).requests[IBV_WR_BIND_MW]; }
  uint64_t invalidations() const { return (rank(1).counts - before_).requests[IBV_WR_LOCAL_INV]; }

  std::unique_ptr<World> world_;
  std::span<std::byte> memory_;
  std::vector<std::byte> source_;
  RemoteRegion region_;
  Counts before_;
  uint32_t puts_ = 0;
};

TEST_F(RestTest, AWindowThatRestsIsNotBoundAgain) {
  for (int i = 0; i < 5; ++i) ASSERT_NO_FATAL_FAILURE(put_and_rest(memory_));
  EXPECT_EQ(binds(), 1u);
  EXPECT_EQ(invalidations(), 0u);
  world_->at(1).end_rests();
  EXPECT_EQ(invalidations(), 1u);
  ASSERT_NO_FATAL_FAILURE(put_in_vain(region_));
  ASSERT_NO_FATAL_FAILURE(put_and_rest(memory_));
  EXPECT_EQ(binds(), 2u);
}

TEST_F(RestTest, ConcealEndsIt) {
  ASSERT_NO_FATAL_FAILURE(put_and_rest(memory_));
  region_ = world_->at(1).expose(0, memory_);
  world_->conceal(1, 0, region_);
  EXPECT_EQ(invalidations(), 1u);
  ASSERT_NO_FATAL_FAILURE(put_in_vain(region_));
}

TEST_F(RestTest, AnotherRangeIsAnotherWindow) {
  ASSERT_NO_FATAL_FAILURE(put_and_rest(memory_));
  ASSERT_NO_FATAL_FAILURE(put_and_rest(memory_.first(kBytes / 2)));
  EXPECT_EQ(binds(), 2u);
  ASSERT_NO_FATAL_FAILURE(put_and_rest(memory_));
  EXPECT_EQ(binds(), 2u);
}

TEST_F(RestTest, FewRestForAPeer) {
  for (size_t i = 1; i <= 12; ++i) ASSERT_NO_FATAL_FAILURE(put_and_rest(memory_.subspan(1000 * i, 5000)));
  EXPECT_EQ(binds(), 12u);
  EXPECT_EQ(invalidations(), 4u);
}

// By one call of the device, and one completion.
TEST_F(RestTest, AllEndTogether) {
  for (size_t i = 1; i <= 5; ++i) ASSERT_NO_FATAL_FAILURE(put_and_rest(memory_.subspan(1000 * i, 5000)));
  drain(*world_);
  const Counts before = rank(1).counts;
  world_->at(1).end_rests();
  const Counts taken = rank(1).counts - before;
  EXPECT_EQ(taken.requests[IBV_WR_LOCAL_INV], 5u);
  EXPECT_EQ(taken.all(), 5u);
  EXPECT_EQ(taken.posts, 1u);
  EXPECT_EQ(taken.signaled, 1u);
}

// What is pinned for them is what another region lacks. After that none rests for a while.
TEST_F(RestTest, AShortageEndsThemAll) {
  for (size_t i = 1; i <= 3; ++i) ASSERT_NO_FATAL_FAILURE(put_and_rest(memory_.subspan(1000 * i, 5000)));
  lack_memory_until_ended(3);
  std::vector<std::byte> other(kBytes);
  const RemoteRegion region = world_->at(1).expose(0, other);
  EXPECT_NE(region.key, 0u);
  EXPECT_EQ(invalidations(), 3u);
  world_->conceal(1, 0, region);
  EXPECT_EQ(world_->counter(1, "not_exposed"), 0);
  const uint64_t bound = binds();
  for (int i = 0; i < 40; ++i) ASSERT_NO_FATAL_FAILURE(put_and_rest(memory_));
  EXPECT_EQ(binds(), bound + 33);
}

// Each of them costs a failed registration, so that they have to become rare.
TEST_F(RestTest, ShortagesInARowEndThemForLongerAndLonger) {
  std::vector<std::vector<std::byte>> others;  // of which the cache knows none yet
  const auto binds_after_a_shortage = [&] {
    put_and_rest(memory_);
    lack_memory_until_ended(1);
    world_->conceal(1, 0, world_->at(1).expose(0, others.emplace_back(kBytes)));
    const uint64_t bound = binds();
    for (int i = 0; i < 200; ++i) put_and_rest(memory_);
    return binds() - bound;
  };
  EXPECT_EQ(binds_after_a_shortage(), 33u);
  EXPECT_EQ(binds_after_a_shortage(), 65u);
  EXPECT_EQ(binds_after_a_shortage(), 129u);
}

TEST_F(RestTest, AShortageOfAConnectionEndsThemToo) {
  world_.reset();
  begin(conformance::test_seed());
  world_ = make_connected(3, {"IBCOLL_VERBS_WINDOWS=on"});
  ASSERT_TRUE(world_);
  ASSERT_NO_FATAL_FAILURE(put_and_rest(memory_));
  lack_memory_until_ended(1);
  ASSERT_TRUE(world_->send(1, 2, numbered(1), {}));
  EXPECT_TRUE(world_->pump_until([&] { return world_->messages(2, 1) == 1 || !lost(*world_, 1, 2).empty(); }));
  EXPECT_EQ(lost(*world_, 1, 2), "");
}

TEST_F(RestTest, AShortageOfASenderEndsThemToo) {
  ASSERT_NO_FATAL_FAILURE(put_and_rest(memory_));
  lack_memory_until_ended(1);
  std::vector<std::byte> from(kBytes), to(kBytes);
  for (uint32_t i = 1; i <= 2; ++i) {
    const RemoteRegion region = world_->at(0).expose(1, to);
    fill(from, i);
    ASSERT_TRUE(world_->put(1, 0, region, from, numbered(i)));
    ASSERT_TRUE(world_->pump_until([&] { return world_->messages(0, 1) == i; }));
    EXPECT_EQ(first_wrong(to, i), kBytes);
    world_->conceal(0, 1, region);
    EXPECT_EQ(world_->counter(1, "puts_copied"), 1) << i;
    EXPECT_EQ(invalidations(), 1u) << i;
  }
}

// The cache cannot unpin what rests, so that takes no more than half of what it may keep.
TEST_F(RestTest, TheLimitsOfTheCacheHold) {
  const auto bound_by = [this](const char* limit) {
    open({"IBCOLL_VERBS_WINDOWS=on", limit});
    for (int i = 0; i < 3; ++i) put_and_rest(memory_);
    return binds();
  };
  EXPECT_EQ(bound_by("IBCOLL_REGISTRATION_REGIONS=1"), 3u);
  EXPECT_EQ(bound_by("IBCOLL_REGISTRATION_REGIONS=2"), 1u);
  EXPECT_EQ(bound_by("IBCOLL_REGISTRATION_BYTES=128K"), 3u);
  EXPECT_EQ(bound_by("IBCOLL_REGISTRATION_BYTES=256K"), 1u);
}

// New pages at the same address are not those that are pinned.
TEST_F(RestTest, MemoryThatIsFreedAndMadeAgainIsAnotherWindow) {
  ASSERT_NO_FATAL_FAILURE(put_and_rest(memory_));
  (void)free_memory(memory_.data());
  const Result<void*> made = allocate_memory(kBytes);
  ASSERT_TRUE(made.ok());
  memory_ = {static_cast<std::byte*>(made.value()), kBytes};
  ASSERT_NO_FATAL_FAILURE(put_and_rest(memory_));
  EXPECT_EQ(binds(), 2u);
}

TEST_F(RestTest, ItEndsWithTheConnection) {
  ASSERT_NO_FATAL_FAILURE(put_and_rest(memory_));
  RemoteRegion wrong = region_;
  wrong.key ^= 0x5500;
  ASSERT_NO_FATAL_FAILURE(put_in_vain(wrong));
  ASSERT_NO_FATAL_FAILURE(put_and_rest(memory_));
  EXPECT_EQ(binds(), 2u);
  EXPECT_EQ(invalidations(), 0u);
}

// Then its place in the table is free for one region, not for two.
TEST_F(RestTest, ItsPlaceIsFreeOnceAfterTheConnection) {
  ASSERT_NO_FATAL_FAILURE(put_and_rest(memory_));
  RemoteRegion wrong = region_;
  wrong.key ^= 0x5500;
  ASSERT_NO_FATAL_FAILURE(put_in_vain(wrong));
  const RemoteRegion whole = world_->at(1).expose(0, memory_), part = world_->at(1).expose(0, memory_.first(5000));
  world_->got(1).clear();
  uint64_t come = 0;
  for (const RemoteRegion& region : {whole, part}) {
    fill(source_, ++puts_);
    ASSERT_TRUE(world_->put(0, 1, region, std::span(source_).first(region.bytes), numbered(puts_)));
    ASSERT_TRUE(world_->pump_until([&] { return world_->messages(1, 0) == come + 1; }));
    EXPECT_EQ(first_wrong(memory_.first(region.bytes), puts_), region.bytes);
    ++come;
  }
  world_->conceal(1, 0, part);
  world_->conceal(1, 0, whole);
}

// Each break gives the window another key. The peer learns which key it replaces.
TEST_F(RestTest, BreaksBeforeAndAfterItRests) {
  ASSERT_NO_FATAL_FAILURE(put_and_rest(memory_));
  for (int round = 0; round < 3; ++round) {
    region_ = world_->at(1).expose(0, memory_);
    RemoteRegion wrong = region_;
    wrong.key ^= 0x5500;
    ASSERT_NO_FATAL_FAILURE(put_in_vain(wrong));
    fill(source_, ++puts_);
    world_->got(1).clear();
    ASSERT_TRUE(world_->put(0, 1, region_, source_, numbered(puts_)));
    ASSERT_TRUE(world_->pump_until([&] { return world_->messages(1, 0) == 1; }));
    EXPECT_EQ(first_wrong(memory_, puts_), kBytes) << round;
    ASSERT_TRUE(world_->at(1).rest(0, region_));
  }
}

// Scratch memory is exposed in every run: its window rests between them. What a long message then takes is its
// announcement, the data and the note, in two calls of the device, and one completion.
TEST(Windows, OfScratchMemoryAreBoundOnce) {
  if (memlock_limit() != kNoMemlock) GTEST_SKIP();
  constexpr uint64_t kRuns = 10, kSpare = 4;  // for credit
  EngineJob job(2, conformance::test_seed(), {"IBCOLL_VERBS_WINDOWS=on"});
  CallParams params;
  params.collective = IBCOLL_REDUCE_SCATTER_BLOCK;
  params.p = 2;
  params.op = IBCOLL_SUM;
  params.count = 60'000 / sizeof(uint32_t);
  ASSERT_EQ(job.run(params, "recursive_halving"), "");
  job.drain();
  const std::vector<Counts> before = job.counts();
  ASSERT_EQ(job.run(params, "recursive_halving", kRuns), "");
  job.drain();
  for (size_t i = 0; i < 2; ++i) {
    const Counts one = job.counts()[i] - before[i];
    EXPECT_EQ(one.requests[IBV_WR_BIND_MW] + one.requests[IBV_WR_LOCAL_INV], 0u);
    EXPECT_GE(one.all(), 3 * kRuns);
    EXPECT_LE(one.all(), 3 * kRuns + kSpare);
    EXPECT_LE(one.posts, 2 * kRuns + kSpare);
    EXPECT_LE(one.signaled, kRuns + kSpare);
  }
}

// Other windows are bound by the call that announces them, and asks for no completion.
TEST(Windows, AreBoundWithTheAnnouncement) {
  constexpr uint64_t kRuns = 10, kSpare = 4;
  EngineJob job(2, conformance::test_seed(), {"IBCOLL_VERBS_WINDOWS=on"});
  CallParams params;
  params.collective = IBCOLL_ALLTOALL;
  params.p = 2;
  params.bytes = 32'768;
  ASSERT_EQ(job.run(params, "pap_direct"), "");
  job.drain();
  const std::vector<Counts> before = job.counts();
  ASSERT_EQ(job.run(params, "pap_direct", kRuns), "");
  job.drain();
  for (size_t i = 0; i < 2; ++i) {
    const Counts one = job.counts()[i] - before[i];
    EXPECT_EQ(one.requests[IBV_WR_BIND_MW], kRuns);
    EXPECT_EQ(one.requests[IBV_WR_LOCAL_INV], kRuns);
    EXPECT_LE(one.posts, 3 * kRuns + kSpare);
    EXPECT_LE(one.signaled, 2 * kRuns + kSpare);
  }
}

}  // namespace
}  // namespace ibcoll::fake_verbs
