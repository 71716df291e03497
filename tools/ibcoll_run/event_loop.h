// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/epoll.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace ibcoll::run {

// epoll and timers for one thread. Callbacks may watch and forget anything, themselves included.
class EventLoop {
 public:
  using Clock = std::chrono::steady_clock;
  using OnReady = std::function<void(uint32_t events)>;
  using OnTime = std::function<void()>;
  using TimerId = uint64_t;  // 0 names no timer

  Status open();
  // Calls back whenever `events` (EPOLLIN, EPOLLOUT; errors and hang-ups always) hold. The caller keeps fd open until
  // forget(). UNSUPPORTED for files that are always ready (regular files, /dev/null): those need no waiting.
  Status watch(int fd, uint32_t events, OnReady on_ready);
  // 0 pauses, hang-ups included.
  void change(int fd, uint32_t events);
  void forget(int fd);

  TimerId after(std::chrono::duration<double> delay, OnTime on_time);
  void cancel(TimerId id);
  // The timer goes off this much later. Nothing if it went off or was cancelled.
  void postpone(TimerId id, Clock::duration by);

  // Waits for the next event or timer and calls back.
  Status run_once();

 private:
  struct Watch {
    uint64_t id;
    int fd;
    uint32_t events;
    OnReady on_ready;
  };
  struct Timer {
    TimerId id;
    OnTime on_time;
  };

  void run_due_timers();
  int milliseconds_to_next_timer() const;

  UniqueFd epoll_;
  uint64_t next_id_ = 1;
  std::unordered_map<int, std::shared_ptr<Watch>> watches_;
  std::unordered_map<uint64_t, std::shared_ptr<Watch>> by_id_;  // events carry the id: a reused fd is another watch
  std::multimap<Clock::time_point, Timer> timers_;
  std::unordered_map<TimerId, std::multimap<Clock::time_point, Timer>::iterator> positions_;  // in timers_
};

}  // namespace ibcoll::run
