// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/input_source.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "tests/launcher/loop_test.h"
#include "tools/ibcoll_run/host.h"

namespace ibcoll::run {
namespace {

using namespace std::chrono_literals;

// Keeps the input of rank 0.
class Taker : public Host {
 public:
  void start() override {}
  void signal(int) override {}
  void kill_rank(int) override {}
  void resize(int, int) override {}
  void ask() override {}
  void pause_output(bool) override {}
  void send_input(std::string_view bytes) override {
    input += bytes;
    ended = ended || bytes.empty();
  }
  void abandon() override {}

  std::string input;
  bool ended = false;
};

class InputSourceTest : public LoopTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(LoopTest::SetUp());
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    write_end_.reset(ends[1]);
    before_.reset(::dup(STDIN_FILENO));
    ASSERT_EQ(::dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    ::close(ends[0]);
    source_.emplace(loop_, host_);
    source_->start();
  }
  void TearDown() override {
    source_.reset();
    ::dup2(before_.get(), STDIN_FILENO);
  }
  void write(const std::string& text) {
    ASSERT_EQ(::write(write_end_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  Taker host_;
  UniqueFd write_end_, before_;
  std::optional<InputSource> source_;
};

// As in a shell: `read` of another program may be quicker.
TEST_F(InputSourceTest, WhatAnotherProcessTookIsNotTheEnd) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd first(ends[0]), first_write_end(ends[1]);
  bool taken = false;
  ASSERT_TRUE(loop_
                  .watch(first.get(), EPOLLIN,
                         [&](uint32_t) {
                           char letter = 0;
                           taken = ::read(STDIN_FILENO, &letter, 1) == 1;
                           loop_.forget(first.get());
                         })
                  .ok());
  ASSERT_EQ(::write(first_write_end.get(), "x", 1), 1);  // seen before what comes next, in one look of the loop
  write("a");
  EXPECT_TRUE(runs_until([&] { return taken; }));
  EXPECT_FALSE(host_.ended);
  write("b");
  EXPECT_TRUE(runs_until([&] { return !host_.input.empty(); }));
  EXPECT_EQ(host_.input, "b");
  write_end_.reset();
  EXPECT_TRUE(runs_until([&] { return host_.ended; }));
}

TEST_F(InputSourceTest, NoMoreIsReadThanRankZeroTakes) {
  const std::string window(Host::kInputWindow, 'x');
  ASSERT_GE(::fcntl(write_end_.get(), F_SETPIPE_SZ, 4 * Host::kInputWindow), 0);
  write(window + "abc");
  EXPECT_TRUE(runs_until([&] { return host_.input.size() == window.size(); }));
  EXPECT_FALSE(runs_until([&] { return host_.ended || host_.input.size() > window.size(); }, 1ms));
  source_->taken(2);
  EXPECT_TRUE(runs_until([&] { return host_.input.size() == window.size() + 2; }));
  EXPECT_FALSE(runs_until([&] { return host_.ended || host_.input.size() > window.size() + 2; }, 1ms));
  write_end_.reset();
  source_->taken(window.size());
  EXPECT_TRUE(runs_until([&] { return host_.ended; }));
  EXPECT_EQ(host_.input, window + "abc");
}

}  // namespace
}  // namespace ibcoll::run
