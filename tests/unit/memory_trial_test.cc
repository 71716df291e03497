// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/shm/memory_trial.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <thread>

namespace ibcoll::shm {
namespace {

constexpr std::chrono::seconds kLong{60};

class MemoryTrialTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Segment>> made = Segment::create(2, 1 << 18);
    ASSERT_TRUE(made.ok()) << made.status().text();
    segment_ = std::move(*made);
    // Two threads of one process must not map at the same time what a process maps once.
    ASSERT_TRUE(segment_->map_heap(0, kUnit / 4).ok());
    for (int rank : {0, 1}) {
      segment_->info(rank).pid = ::getpid();
      ASSERT_TRUE(segment_->ensure_pair(rank, 1 - rank).ok());
    }
  }

  // Rank 1 is a thread, of the same process.
  MemoryModel time(bool reads, bool partner_reads) {
    MemoryModel theirs;
    std::thread partner([&] { theirs = time_memory(*segment_, 1, 0, partner_reads, kLong); });
    const MemoryModel mine = time_memory(*segment_, 0, 1, reads, kLong);
    partner.join();
    EXPECT_EQ(mine.copy_us_per_byte > 0, theirs.copy_us_per_byte > 0);
    return mine;
  }

  std::unique_ptr<Segment> segment_;
};

TEST_F(MemoryTrialTest, TimesCopiesAndReads) {
  const MemoryModel model = time(true, false);
  EXPECT_GT(model.copy_us_per_byte, 1e-7) << "10 TB/s";
  EXPECT_LT(model.copy_us_per_byte, 1e-1) << "10 MB/s";
  EXPECT_GT(model.streamed_copy_us_per_byte, 1e-7);
  EXPECT_LT(model.streamed_copy_us_per_byte, 1e-1);
  EXPECT_GT(model.read_us + 65536 * model.read_us_per_byte, 1e-1) << "a system call that copies 64 KB";
}

TEST_F(MemoryTrialTest, WithoutReadsTimesCopiesOnly) {
  const MemoryModel model = time(false, true);
  EXPECT_GT(model.copy_us_per_byte, 0);
  EXPECT_EQ(model.read_us, 0);
  EXPECT_EQ(model.read_us_per_byte, 0);
}

TEST_F(MemoryTrialTest, APartnerThatCannotBeReadIsNoPartnerForReads) {
  segment_->info(0).pid = segment_->info(1).pid = -1;
  const MemoryModel model = time(true, true);
  EXPECT_GT(model.copy_us_per_byte, 0);
  EXPECT_EQ(model.read_us_per_byte, 0);
}

TEST_F(MemoryTrialTest, EndsWithoutTheOtherAndKnowsNothing) {
  const MemoryModel model = time_memory(*segment_, 0, 1, true, std::chrono::milliseconds(20));
  EXPECT_EQ(model.copy_us_per_byte, 0);
  EXPECT_EQ(model.read_us_per_byte, 0);
}

// As far as the second try, and no further.
TEST_F(MemoryTrialTest, APartnerThatGoesAwayIsNotWaitedFor) {
  segment_->info(1).trial_step = 5;
  const MemoryModel model = time_memory(*segment_, 0, 1, true, std::chrono::milliseconds(20));
  EXPECT_EQ(model.copy_us_per_byte, 0);
  EXPECT_EQ(model.read_us_per_byte, 0);
}

TEST_F(MemoryTrialTest, ThreadsMayRunWhereTheyMightBefore) {
  cpu_set_t before, after;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  time(true, true);
  ASSERT_EQ(::sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST_F(MemoryTrialTest, LeavesRingsEmpty) {
  time(true, true);
  for (int from : {0, 1}) {
    EXPECT_EQ(segment_->pair(from, 1 - from).tail.load(), 0u);
    EXPECT_EQ(segment_->pair(from, 1 - from).head.load(), 0u);
  }
}

TEST(MemoryTrial, TheJobGoesByTheMiddle) {
  const MemoryModel none = middle_of({{}, {}});
  EXPECT_EQ(none.copy_us_per_byte, 0);
  EXPECT_EQ(none.read_us_per_byte, 0);
  // A rank that has not timed does not count; start-up and bytes of reads belong together.
  const MemoryModel quiet{1e-4, 1.6, 1e-4, 5e-5}, disturbed{9e-4, 2.7, 8e-5 + 1e-4, 4e-5},
      copies_only{5e-4, 0, 0, 3e-4};
  for (const std::vector<MemoryModel>& two : {std::vector{quiet, {}, disturbed}, std::vector{disturbed, quiet, {}}}) {
    const MemoryModel middle = middle_of(two);
    EXPECT_EQ(middle.copy_us_per_byte, quiet.copy_us_per_byte);
    EXPECT_EQ(middle.streamed_copy_us_per_byte, quiet.streamed_copy_us_per_byte);
    EXPECT_EQ(middle.read_us, quiet.read_us);
    EXPECT_EQ(middle.read_us_per_byte, quiet.read_us_per_byte);
  }
  const MemoryModel middle = middle_of({disturbed, copies_only, quiet});
  EXPECT_EQ(middle.copy_us_per_byte, copies_only.copy_us_per_byte);
  EXPECT_EQ(middle.streamed_copy_us_per_byte, copies_only.streamed_copy_us_per_byte);
  EXPECT_EQ(middle.read_us, quiet.read_us);
  // A start-up of nothing is a measurement, too.
  EXPECT_EQ(middle_of({{1e-4, 0, 1e-4}}).read_us_per_byte, 1e-4);
}

TEST(MemoryTrial, OneRankAndTheOneHalfOfTheNodeAwayArePartners) {
  EXPECT_EQ(trial_partner(0, 1), -1);
  for (const int ranks : {2, 3, 4, 7, 128})
    for (int rank = 0; rank < ranks; ++rank) {
      const int partner = trial_partner(rank, ranks);
      EXPECT_EQ(partner >= 0, rank == 0 || rank == ranks / 2) << rank << " of " << ranks;
      if (partner >= 0) {
        EXPECT_EQ(trial_partner(partner, ranks), rank);
      }
    }
}

}  // namespace
}  // namespace ibcoll::shm
