// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <functional>

#include "tools/ibcoll_run/byte_queue.h"
#include "tools/ibcoll_run/event_loop.h"

namespace ibcoll::run {

// One end of the connection between launcher and agent: sends a sign of life every second, and notices when none comes
// from the other end.
//
// Silence is counted in beats of this process, not read from a clock: a process that was stopped, or whose machine
// slept, has not listened meanwhile, and must not conclude that the other end is lost.
class Heartbeat {
 public:
  using Seconds = std::chrono::duration<double>;

  // `queue` leads to the other end.
  Heartbeat(EventLoop& loop, ByteQueue& queue) : loop_(loop), queue_(queue) {}
  ~Heartbeat();

  // From now on; `on_silence` is called once, when nothing was heard for `timeout`.
  void start(Seconds timeout, std::function<void()> on_silence);
  void stop();
  // Something came from the other end.
  void heard();
  // The other end has announced that it will be silent: its silence does not count until it is heard again.
  void excuse();

 private:
  void beat();

  EventLoop& loop_;
  ByteQueue& queue_;
  std::function<void()> on_silence_;
  Seconds interval_{};
  int most_silent_beats_ = 0;
  int silent_beats_ = 0;
  bool excused_ = false;
  EventLoop::TimerId timer_ = 0;
};

}  // namespace ibcoll::run
