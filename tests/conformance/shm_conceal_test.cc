// SPDX-License-Identifier: BSD-3-Clause
// [C4] and [C7] where a write is under way: the writer is a process that the test stops and kills. What it writes to
//      the
// exposure's word is written here on its behalf.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "runtime/shm/transport.h"

namespace ibcoll::conformance {
namespace {

class ShmConceal : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<shm::Segment>> made = shm::Segment::create(2, 16 * 1024);
    ASSERT_TRUE(made.ok()) << made.status().text();
    segment_ = std::move(*made);
    writer_ = ::fork();
    if (writer_ == 0) {
      ::alarm(60);
      for (;;) ::pause();
    }
    transport_ = std::make_unique<shm::Transport>(segment_, std::vector<int>{0, 1}, 0, true);
    segment_->info(1).pid = writer_;
    ASSERT_TRUE(transport_->node().probe().ok());
    segment_->may_copy(1, 0) = 1;
    region_ = transport_->expose(1, memory_);
    ASSERT_NE(region_.key, 0u);
  }
  void TearDown() override {
    ::kill(writer_, SIGKILL);
    ::waitpid(writer_, nullptr, 0);
  }
  std::atomic<uint64_t>& word() {
    return segment_->pair(1, 0).exposures[region_.key % shm::PairBlock::kExposures].word;
  }
  void begin_write() { word() = (word() & ~uint64_t{3}) | shm::Exposure::kWriting; }
  void end_write() { word() = (word() & ~uint64_t{3}) | shm::Exposure::kExposed; }

  std::shared_ptr<shm::Segment> segment_;
  std::unique_ptr<shm::Transport> transport_;
  std::array<std::byte, 4096> memory_{};
  RemoteRegion region_;
  pid_t writer_ = -1;
};

TEST_F(ShmConceal, DoesNotWaitForAWriterThatIsStopped) {
  begin_write();
  ::kill(writer_, SIGSTOP);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(transport_->conceal(1, region_));
  ::kill(writer_, SIGCONT);
  end_write();
  EXPECT_TRUE(transport_->conceal(1, region_));
  EXPECT_EQ(word() & 3, shm::Exposure::kFree);
}

TEST_F(ShmConceal, AnEndedWriterWritesNoMore) {
  begin_write();
  ::kill(writer_, SIGKILL);
  siginfo_t info;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(writer_), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(transport_->conceal(1, region_));
  EXPECT_EQ(word() & 3, shm::Exposure::kFree);
}

// Killed between opening its ring and counting that, it is reported all the same.
TEST_F(ShmConceal, AnEndJustAfterTheFirstRingWasOpened) {
  ASSERT_TRUE(segment_->ensure_pair(1, 0).ok());
  segment_->open(1, 0) = 1;
  ::kill(writer_, SIGKILL);
  siginfo_t info;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(writer_), &info, WEXITED | WNOWAIT), 0);
  std::array<Event, 4> events;
  size_t count = 0;
  for (int i = 0; i < 1000 && count == 0; ++i) {
    transport_->check_peers();
    count = transport_->poll(events);
    ::usleep(1000);
  }
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(events[0].kind, Event::Kind::kPeerFailed);
  EXPECT_EQ(events[0].peer, 1);
}

}  // namespace
}  // namespace ibcoll::conformance
