// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/event_loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <string>

#include "tests/launcher/loop_test.h"

namespace ibcoll::run {
namespace {

using namespace std::chrono_literals;

class EventLoopTest : public LoopTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(LoopTest::SetUp());
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    read_end_.reset(ends[0]);
    write_end_.reset(ends[1]);
  }

  UniqueFd read_end_, write_end_;
};

TEST_F(EventLoopTest, APausedFileComesBack) {
  int calls = 0;
  ASSERT_TRUE(loop_.watch(read_end_.get(), 0, [&](uint32_t) { ++calls; }).ok());
  ASSERT_EQ(::write(write_end_.get(), "x", 1), 1);
  for (int round = 1; round <= 3; ++round) {
    EXPECT_FALSE(runs_until([&] { return calls >= round; }, 1ms)) << round;
    loop_.change(read_end_.get(), EPOLLIN);
    EXPECT_TRUE(runs_until([&] { return calls >= round; })) << round;
    loop_.change(read_end_.get(), 0);
    calls = round;
  }
}

TEST_F(EventLoopTest, AHangUpIsNoNewsOfAPausedFile) {
  int calls = 0;
  ASSERT_TRUE(loop_.watch(read_end_.get(), EPOLLIN, [&](uint32_t) { ++calls; }).ok());
  loop_.change(read_end_.get(), 0);
  write_end_.reset();
  EXPECT_FALSE(runs_until([&] { return calls > 0; }, 1ms));
}

TEST_F(EventLoopTest, AReusedDescriptorIsAnotherFile) {
  const int fd = read_end_.get();
  std::string calls;
  ASSERT_TRUE(loop_.watch(fd, EPOLLIN, [&](uint32_t) { calls += "old "; }).ok());
  loop_.forget(fd);
  ASSERT_TRUE(loop_
                  .watch(fd, EPOLLIN,
                         [&](uint32_t) {
                           calls += "new ";
                           loop_.forget(fd);
                         })
                  .ok());
  ASSERT_EQ(::write(write_end_.get(), "x", 1), 1);
  EXPECT_TRUE(runs_until([&] { return !calls.empty(); }));
  EXPECT_FALSE(runs_until([&] { return calls != "new "; }, 1ms));
}

TEST_F(EventLoopTest, TimersGoOffOnceAndInOrder) {
  std::string order;
  loop_.after(3ms, [&] { order += "c"; });
  loop_.after(1ms, [&] { order += "a"; });
  const EventLoop::TimerId cancelled = loop_.after(2ms, [&] { order += "x"; });
  loop_.after(2ms, [&] { order += "b"; });
  loop_.cancel(cancelled);
  while (order.size() < 3) ASSERT_TRUE(loop_.run_once().ok());  // no event but the timers wakes it
  EXPECT_EQ(order, "abc");
}

TEST_F(EventLoopTest, ATimerThatIsPostponedGoesOffLater) {
  std::string order;
  loop_.after(2ms, [&] { order += "a"; });
  loop_.after(30ms, [&] { order += "b"; });
  const EventLoop::TimerId postponed = loop_.after(1ms, [&] { order += "c"; });
  const EventLoop::TimerId cancelled = loop_.after(1ms, [&] { order += "x"; });
  loop_.postpone(postponed, 30ms);
  loop_.postpone(cancelled, 5ms);
  loop_.cancel(cancelled);
  loop_.postpone(cancelled, 1ms);
  loop_.postpone(0, 1ms);
  while (order.size() < 3) ASSERT_TRUE(loop_.run_once().ok());
  EXPECT_EQ(order, "abc");
  loop_.postpone(postponed, 1ms);
  EXPECT_FALSE(runs_until([&] { return order.size() > 3; }, 20ms));
}

// Cancelling a timer that has gone off changes nothing, whatever timers there are now.
TEST_F(EventLoopTest, ATimerThatWentOffIsForgotten) {
  for (int round = 0; round < 10; ++round) {
    bool first = false, second = false;
    const EventLoop::TimerId gone = loop_.after(0s, [&] { first = true; });
    ASSERT_TRUE(runs_until([&] { return first; }));
    loop_.after(0s, [&] { second = true; });
    loop_.cancel(gone);
    loop_.cancel(gone);
    EXPECT_TRUE(runs_until([&] { return second; }, 5s));
  }
}

}  // namespace
}  // namespace ibcoll::run
