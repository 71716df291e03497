// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/heartbeat.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "tools/ibcoll_run/agent_channel.h"

namespace ibcoll::run {
namespace {

using namespace std::chrono_literals;

constexpr Heartbeat::Seconds kTimeout = 0.1s;

class HeartbeatTest : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    other_end_.reset(ends[0]);
    ASSERT_TRUE(loop_.open().ok());
    ASSERT_TRUE(queue_.own(UniqueFd(ends[1])).ok());
    heartbeat_.start(kTimeout, [this] { ++silences_; });
  }

  void run_for(std::chrono::duration<double> time) {
    bool over = false;
    loop_.after(time, [&over] { over = true; });
    while (!over) ASSERT_TRUE(loop_.run_once().ok());
  }

  void run_until_silence() {
    const auto end = EventLoop::Clock::now() + 20s;
    while (silences_ == 0 && EventLoop::Clock::now() < end) ASSERT_TRUE(loop_.run_once().ok());
  }

  // Signs of life that came since the last call.
  int beats() {
    std::array<char, 65536> buffer;
    const ssize_t got = ::read(other_end_.get(), buffer.data(), buffer.size());
    if (got <= 0) return 0;
    AgentFrameReader reader;
    reader.add({buffer.data(), static_cast<size_t>(got)});
    int count = 0;
    for (AgentFrame frame; reader.next(frame).value(); ++count) EXPECT_EQ(frame.message, Message::kAlive);
    return count;
  }

  EventLoop loop_;
  UniqueFd other_end_;
  ByteQueue queue_{loop_};
  Heartbeat heartbeat_{loop_, queue_};
  int silences_ = 0;
};

TEST_F(HeartbeatTest, BeatsUntilItMeetsSilence) {
  EXPECT_EQ(beats(), 1);
  EXPECT_EQ(silences_, 0);
  run_until_silence();
  EXPECT_EQ(silences_, 1);
  EXPECT_EQ(beats(), 10);
  run_for(kTimeout);
  EXPECT_EQ(silences_, 1);
  EXPECT_EQ(beats(), 0);
}

TEST_F(HeartbeatTest, WhatIsHeardEndsTheSilence) {
  for (int i = 0; i < 6; ++i) {
    run_for(kTimeout / 2);
    heartbeat_.heard();
  }
  EXPECT_EQ(silences_, 0);
}

TEST_F(HeartbeatTest, TheTimeInWhichThisProcessDidNotListenDoesNotCount) {
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(kTimeout * 2);
    ASSERT_TRUE(loop_.run_once().ok());
  }
  EXPECT_EQ(silences_, 0);
}

TEST_F(HeartbeatTest, AnAnnouncedSilenceIsExcusedUntilTheOtherEndIsHeard) {
  heartbeat_.excuse();
  run_for(kTimeout * 3);
  EXPECT_EQ(silences_, 0);
  heartbeat_.heard();
  run_until_silence();
  EXPECT_EQ(silences_, 1);
}

TEST_F(HeartbeatTest, AnEndThatTakesNothingCostsNoMemory) {
  heartbeat_.excuse();
  queue_.write(std::string(1 << 17, 'x'));  // more than the pipe holds
  const size_t before = queue_.queued();
  ASSERT_GT(before, 0U);
  run_for(kTimeout * 2);
  EXPECT_EQ(queue_.queued(), before);
}

}  // namespace
}  // namespace ibcoll::run
