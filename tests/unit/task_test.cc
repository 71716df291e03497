// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/comm/task.h"

#include <gtest/gtest.h>

#include <memory>

#include "runtime/engine/engine.h"
#include "runtime/engine/team.h"

namespace ibcoll {
namespace {

struct Gate {
  bool& open;
  bool await_ready() const noexcept { return open; }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  void await_resume() const noexcept {}
};

struct Trace {
  int step = 0;
  bool destroyed = false;
};

struct Witness {
  Trace& trace;
  ~Witness() { trace.destroyed = true; }
};

Task two_steps(Comm&, Trace& trace, bool& open) {
  const Witness witness{trace};
  trace.step = 1;
  Gate gate{open};
  co_await gate;
  trace.step = 2;
}

// A million waits that are over at once: the stack must not grow.
Task many_steps(Comm&, uint64_t& count) {
  bool open = true;
  Gate gate{open};
  for (count = 0; count < 1'000'000; ++count) co_await gate;
}

class TaskTest : public testing::Test {
 protected:
  Engine engine_{0, {nullptr}, {}};
  Team team_{engine_, 1, Placement({0}, {0}), 0, nullptr};
  Comm comm_{team_, 0};
  void SetUp() override { comm_.reset(1, IBCOLL_SCHEME_AUTO, false); }
};

TEST_F(TaskTest, RunsFromWaitToWait) {
  Trace trace;
  bool open = false;
  Task task = two_steps(comm_, trace, open);
  ASSERT_TRUE(static_cast<bool>(task));
  EXPECT_EQ(trace.step, 0) << "it starts when it is resumed";
  task.resume();
  EXPECT_EQ(trace.step, 1);
  EXPECT_FALSE(task.done());
  task.resume();
  EXPECT_EQ(trace.step, 2);
  EXPECT_TRUE(task.done());
  EXPECT_TRUE(trace.destroyed);
}

TEST_F(TaskTest, DroppedInTheMiddleItDestroysWhatItHolds) {
  Trace trace;
  bool open = false;
  {
    Task task = two_steps(comm_, trace, open);
    task.resume();
    EXPECT_FALSE(trace.destroyed);
  }
  EXPECT_TRUE(trace.destroyed);
  EXPECT_EQ(trace.step, 1);
}

TEST_F(TaskTest, MovesLeaveNothingBehind) {
  Trace first, second;
  bool open = false;
  Task a = two_steps(comm_, first, open), b = two_steps(comm_, second, open);
  a.resume();
  b.resume();
  a = std::move(b);
  EXPECT_TRUE(first.destroyed);
  EXPECT_FALSE(second.destroyed);
  EXPECT_FALSE(static_cast<bool>(b));
  a = Task();
  EXPECT_TRUE(second.destroyed);
}

TEST_F(TaskTest, ItsFrameLiesInTheArena) {
  Trace trace;
  bool open = true;
  auto* const before = static_cast<std::byte*>(comm_.arena().allocate(1));
  const Task task = two_steps(comm_, trace, open);
  auto* const after = static_cast<std::byte*>(comm_.arena().allocate(1));
  EXPECT_GT(after - before, 64);
  EXPECT_LT(after - before, 1024);
}

TEST_F(TaskTest, TheStackDoesNotGrow) {
  uint64_t count = 0;
  Task task = many_steps(comm_, count);
  task.resume();
  EXPECT_TRUE(task.done());
  EXPECT_EQ(count, 1'000'000u);
}

}  // namespace
}  // namespace ibcoll
