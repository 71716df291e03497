// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/event_loop.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ibcoll::run {

Status EventLoop::open() {
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return error(IBCOLL_ERR_SYSTEM, "epoll_create1: {}", std::strerror(errno));
  return {};
}

Status EventLoop::watch(int fd, uint32_t events, OnReady on_ready) {
  auto entry = std::make_shared<Watch>(Watch{next_id_++, fd, events, std::move(on_ready)});
  epoll_event event{events, {.u64 = entry->id}};
  if (events != 0 && ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return error(errno == EPERM ? IBCOLL_ERR_UNSUPPORTED : IBCOLL_ERR_SYSTEM, "epoll_ctl: {}", std::strerror(errno));
  }
  by_id_[entry->id] = entry;
  watches_[fd] = std::move(entry);
  return {};
}

void EventLoop::change(int fd, uint32_t events) {
  const auto found = watches_.find(fd);
  if (found == watches_.end() || found->second->events == events) return;
  Watch& watch = *found->second;
  // A hang-up cannot be masked, so that a paused file has to leave the set.
  const int operation = events == 0 ? EPOLL_CTL_DEL : watch.events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  epoll_event event{events, {.u64 = watch.id}};
  ::epoll_ctl(epoll_.get(), operation, fd, &event);
  watch.events = events;
}

void EventLoop::forget(int fd) {
  const auto found = watches_.find(fd);
  if (found == watches_.end()) return;
  change(fd, 0);
  by_id_.erase(found->second->id);
  watches_.erase(found);
}

EventLoop::TimerId EventLoop::after(std::chrono::duration<double> delay, OnTime on_time) {
  const TimerId id = next_id_++;
  const auto when = Clock::now() + std::chrono::duration_cast<Clock::duration>(delay);
  positions_[id] = timers_.emplace(when, Timer{id, std::move(on_time)});
  return id;
}

void EventLoop::cancel(TimerId id) {
  const auto position = positions_.find(id);
  if (position == positions_.end()) return;
  timers_.erase(position->second);
  positions_.erase(position);
}

void EventLoop::postpone(TimerId id, Clock::duration by) {
  const auto position = positions_.find(id);
  if (position == positions_.end()) return;
  auto timer = timers_.extract(position->second);
  timer.key() += by;
  position->second = timers_.insert(std::move(timer));
}

int EventLoop::milliseconds_to_next_timer() const {
  if (timers_.empty()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(timers_.begin()->first - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
}

void EventLoop::run_due_timers() {
  while (!timers_.empty() && timers_.begin()->first <= Clock::now()) {
    const OnTime on_time = std::move(timers_.begin()->second.on_time);
    positions_.erase(timers_.begin()->second.id);
    timers_.erase(timers_.begin());
    on_time();
  }
}

Status EventLoop::run_once() {
  std::array<epoll_event, 64> events;
  const int ready = ::epoll_wait(epoll_.get(), events.data(), events.size(), milliseconds_to_next_timer());
  if (ready < 0 && errno != EINTR) return error(IBCOLL_ERR_SYSTEM, "epoll_wait: {}", std::strerror(errno));
  for (int i = 0; i < ready; ++i) {
    const auto found = by_id_.find(events[static_cast<size_t>(i)].data.u64);
    if (found == by_id_.end()) continue;                 // forgotten by an earlier callback
    const std::shared_ptr<Watch> watch = found->second;  // stays alive while its own callback forgets it
    watch->on_ready(events[static_cast<size_t>(i)].events);
  }
  run_due_timers();
  return {};
}

}  // namespace ibcoll::run
