// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/answerer.h"

#include <chrono>

#include "runtime/machine/own_thread.h"

namespace ibcoll {

Answerer::Answerer(ContextLock& lock, Progress& progress) noexcept : context_lock_(lock), progress_(progress) {
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

void Answerer::look() noexcept {
  constexpr int kMostPasses = 100;
  const ContextLock::Guard guard = context_lock_.try_enter();
  if (!guard.owns_lock() || progress_.waiting_threads() > 0 || !progress_.engine().idle()) return;
  for (int passes = 0; passes < kMostPasses && progress_.pass() > 0; ++passes) {
  }
}

// A rank asks after a second, and again after each further one.
void Answerer::run() noexcept {
  constexpr auto kPause = std::chrono::milliseconds(100);
  std::unique_lock guard(lock_);
  while (!ended_.wait_for(guard, kPause, [this] { return ends_; })) {
    guard.unlock();
    look();
    guard.lock();
  }
}

}  // namespace ibcoll
