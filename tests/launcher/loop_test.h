// SPDX-License-Identifier: BSD-3-Clause
// Tests of what an event loop drives.
#pragma once

#include <gtest/gtest.h>

#include <chrono>

#include "tools/ibcoll_run/event_loop.h"

namespace ibcoll::run {

class LoopTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(loop_.open().ok()); }
  // False: it was not so in time.
  template <typename Condition>
  bool runs_until(Condition condition, std::chrono::duration<double> time = std::chrono::seconds(20)) {
    bool late = false;
    const EventLoop::TimerId limit = loop_.after(time, [&] { late = true; });
    while (!condition() && !late && loop_.run_once().ok()) {
    }
    loop_.cancel(limit);
    return condition();
  }

  EventLoop loop_;
};

}  // namespace ibcoll::run
