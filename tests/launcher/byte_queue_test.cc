// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/byte_queue.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <string>

namespace ibcoll::run {
namespace {

using namespace std::chrono_literals;

std::string pattern(size_t bytes) {
  std::string text(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 7 + i / 1000);
  return text;
}

class ByteQueueTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(loop_.open().ok());
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read_end_.reset(ends[0]);
    write_end_.reset(ends[1]);
    ASSERT_EQ(::fcntl(read_end_.get(), F_SETFL, O_NONBLOCK), 0);
  }
  // Reads at most `most` bytes, and lets the loop run. False: the end of the stream.
  bool take(std::string& taken, size_t most) {
    std::string buffer(most, '\0');
    const ssize_t got = ::read(read_end_.get(), buffer.data(), most);
    if (got > 0) taken.append(buffer, 0, static_cast<size_t>(got));
    loop_.after(0s, [] {});
    EXPECT_TRUE(loop_.run_once().ok());
    return got != 0;
  }
  // All until the end, which has to come.
  std::string rest(size_t at_once) {
    std::string taken;
    const auto limit = EventLoop::Clock::now() + 20s;
    while (take(taken, at_once))
      if (EventLoop::Clock::now() > limit) return taken + " and no end";
    return taken;
  }

  EventLoop loop_;
  UniqueFd read_end_, write_end_;
};

TEST_F(ByteQueueTest, NothingIsLostOrSentTwice) {
  const std::string text = pattern(1'500'000);
  ByteQueue queue(loop_);
  size_t progress = 0;
  int drained = 0;
  queue.on_progress = [&](size_t bytes) { progress += bytes; };
  queue.on_drained = [&] { ++drained; };
  ASSERT_TRUE(queue.own(std::move(write_end_)).ok());
  size_t length = 1;
  for (size_t at = 0; at < text.size(); at += length, length = (length * 3 + 1) % 90'000 + 1)
    queue.write(std::string_view(text).substr(at, length));
  EXPECT_EQ(queue.full(), text.size() > ByteQueue::kFull);
  queue.close_when_written();
  EXPECT_EQ(rest(10'007), text);
  EXPECT_EQ(progress, text.size());
  EXPECT_EQ(drained, text.size() > ByteQueue::kFull ? 1 : 0);
  EXPECT_TRUE(queue.empty());
}

TEST_F(ByteQueueTest, ClosesAtOnceWhenAllIsWritten) {
  ByteQueue queue(loop_);
  ASSERT_TRUE(queue.own(std::move(write_end_)).ok());
  queue.write("abc");
  queue.close_when_written();
  EXPECT_EQ(rest(100), "abc");
}

TEST_F(ByteQueueTest, AReaderThatIsGoneIsReportedOnce) {
  ::signal(SIGPIPE, SIG_IGN);
  ByteQueue queue(loop_);
  int broken = 0;
  queue.on_broken = [&] { ++broken; };
  ASSERT_TRUE(queue.own(std::move(write_end_)).ok());
  read_end_.reset();
  for (int i = 0; i < 3; ++i) queue.write("abc");
  EXPECT_EQ(broken, 1);
  EXPECT_EQ(queue.broken_reason(), EPIPE);
  ::signal(SIGPIPE, SIG_DFL);
}

// As with the terminal of another user: the file cannot be opened again, and others need it to block.
TEST_F(ByteQueueTest, ABlockingFileTakesWhatItHasRoomFor) {
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  const int lowest_free = ::dup(write_end_.get());
  ASSERT_GE(lowest_free, 0);
  ::close(lowest_free);
  const rlimit none{static_cast<rlim_t>(lowest_free), files.rlim_max};
  const std::string text = pattern(1'000'000);
  ByteQueue queue(loop_);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const Status status = queue.borrow(write_end_.get());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  ASSERT_TRUE(status.ok());
  queue.write(text);  // a blocking write would not return: the pipe has no reader
  std::string taken;
  const auto limit = EventLoop::Clock::now() + 20s;
  while (taken.size() < text.size() && EventLoop::Clock::now() < limit) take(taken, 50'000);
  EXPECT_EQ(taken, text);
  EXPECT_EQ(::fcntl(write_end_.get(), F_GETFL) & O_NONBLOCK, 0);
}

}  // namespace
}  // namespace ibcoll::run
