// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/answerer.h"

#include <chrono>
#include <utility>

#include "runtime/machine/own_thread.h"

namespace ibcoll {

Answerer::Answerer(std::function<void()> look) noexcept : look_(std::move(look)) {
  (void)start_thread(thread_, "ranks are answered in the next call", [this] { run(); });
}

Answerer::~Answerer() {
  {
    const std::lock_guard guard(lock_);
    ends_ = true;
  }
  ended_.notify_one();
  if (thread_.joinable()) thread_.join();
}

// A rank asks after a second, and again after each further one.
void Answerer::run() noexcept {
  constexpr auto kPause = std::chrono::milliseconds(100);
  std::unique_lock guard(lock_);
  while (!ended_.wait_for(guard, kPause, [this] { return ends_; })) {
    guard.unlock();
    look_();
    guard.lock();
  }
}

}  // namespace ibcoll
