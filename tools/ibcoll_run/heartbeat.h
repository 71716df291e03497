// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <functional>

#include "tools/ibcoll_run/byte_queue.h"
#include "tools/ibcoll_run/event_loop.h"

namespace ibcoll::run {

// One end of the way between launcher and agent: lets the other end hear something every second, and notices when
// nothing comes from there.
//
// Silence is counted in beats of this process, not read from a clock: one that was stopped, or on a machine that slept,
// has not listened meanwhile, and takes nobody for gone when it goes on.
class Heartbeat {
 public:
  using Seconds = std::chrono::duration<double>;

  // `queue` leads to the other end.
  Heartbeat(EventLoop& loop, ByteQueue& queue) : loop_(loop), queue_(queue) {}
  ~Heartbeat();

  // From now on; `on_silence` is called once, when nothing was heard for `patience`.
  void start(Seconds patience, std::function<void()> on_silence);
  void stop();
  // Something came from the other end.
  void heard();
  // The other end has announced that it will be silent: until it is heard again, that means nothing.
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
