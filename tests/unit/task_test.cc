// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/comm/task.h"

#include <gtest/gtest.h>

#include <memory>

#include "runtime/engine/engine.h"
#include "runtime/engine/exchange.h"
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

Task two_steps(Comm&, Trace* trace, bool* open) {
  const Witness witness{*trace};
  trace->step = 1;
  Gate gate{*open};
  co_await gate;
  trace->step = 2;
}

// A million waits that are over at once: the stack must not grow.
Task many_steps(Comm&, uint64_t* count) {
  bool open = true;
  Gate gate{open};
  for (*count = 0; *count < 1'000'000; ++*count) co_await gate;
}

class TaskTest : public testing::Test {
 protected:
  Engine engine_{0, {nullptr}, {}};
  Team team_{engine_, 1, Placement({0}, {0}), 0, nullptr};
  Exchange exchange_{team_, 0};
  Comm& comm_ = exchange_.comm();
  void SetUp() override { exchange_.reset(1, IBCOLL_SCHEME_AUTO, false); }
  void enter(const Task& task) { exchange_.stack().enter(task); }
  bool resume() { return exchange_.resume(); }
};

TEST_F(TaskTest, RunsFromWaitToWait) {
  Trace trace;
  bool open = false;
  Task task = two_steps(comm_, &trace, &open);
  ASSERT_TRUE(static_cast<bool>(task));
  EXPECT_EQ(trace.step, 0) << "it starts when it is resumed";
  enter(task);
  EXPECT_FALSE(resume());
  EXPECT_EQ(trace.step, 1);
  EXPECT_TRUE(resume());
  EXPECT_EQ(trace.step, 2);
  EXPECT_TRUE(task.done());
  EXPECT_TRUE(trace.destroyed);
}

TEST_F(TaskTest, DroppedInTheMiddleItDestroysWhatItHolds) {
  Trace trace;
  bool open = false;
  {
    Task task = two_steps(comm_, &trace, &open);
    enter(task);
    resume();
    EXPECT_FALSE(trace.destroyed);
  }
  EXPECT_TRUE(trace.destroyed);
  EXPECT_EQ(trace.step, 1);
}

TEST_F(TaskTest, MovesLeaveNothingBehind) {
  Trace first, second;
  bool open = false;
  Task a = two_steps(comm_, &first, &open), b = two_steps(comm_, &second, &open);
  for (const Task* task : {&a, &b}) {
    enter(*task);
    resume();
  }
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
  auto* const before = static_cast<std::byte*>(exchange_.arena().allocate(1));
  const Task task = two_steps(comm_, &trace, &open);
  auto* const after = static_cast<std::byte*>(exchange_.arena().allocate(1));
  EXPECT_GT(after - before, 64);
  EXPECT_LT(after - before, 1024);
}

TEST_F(TaskTest, TheStackDoesNotGrow) {
  uint64_t count = 0;
  Task task = many_steps(comm_, &count);
  enter(task);
  EXPECT_TRUE(resume());
  EXPECT_EQ(count, 1'000'000u);
}

Task nested(Comm& c, Trace* trace, bool* open, int depth) {
  const Witness witness{*trace};
  if (depth > 0)
    co_await nested(c, trace, open, depth - 1);
  else
    co_await two_steps(c, trace, open);
  ++trace->step;
}

TEST_F(TaskTest, ATaskAwaitsAnotherAsAFunctionCallsOne) {
  Trace trace;
  bool open = false;
  Task task = nested(comm_, &trace, &open, 9);
  enter(task);
  EXPECT_FALSE(resume());
  EXPECT_EQ(trace.step, 1) << "the innermost one waits";
  EXPECT_FALSE(task.done());
  EXPECT_TRUE(resume());
  EXPECT_EQ(trace.step, 2 + 10) << "all callers went on";
}

Task call_many(Comm& c, uint64_t* count) {
  Trace trace;
  bool open = true;
  for (*count = 0; *count < 100'000; ++*count) co_await two_steps(c, &trace, &open);
}

TEST_F(TaskTest, CallsThatEndAtOnceDoNotDeepenTheStack) {
  uint64_t count = 0;
  Task task = call_many(comm_, &count);
  enter(task);
  EXPECT_TRUE(resume());
  EXPECT_EQ(count, 100'000u);
}

TEST_F(TaskTest, AfterAFailureNoCallerGoesOn) {
  Trace trace;
  bool open = false;
  Task task = nested(comm_, &trace, &open, 1);
  enter(task);
  EXPECT_FALSE(resume());
  comm_.fail(error(IBCOLL_ERR_SYSTEM, "it fell"));
  EXPECT_FALSE(resume());
  EXPECT_EQ(trace.step, 2) << "the innermost task was resumed, its callers were not";
}

}  // namespace
}  // namespace ibcoll
