// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/settler.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <new>
#include <system_error>

#include "runtime/base/log.h"

namespace ibcoll {

Settler::~Settler() {
  ends_ = true;
  if (thread_.joinable()) thread_.join();
}

void Settler::start() noexcept {
  if (thread_.joinable()) thread_.join();
  running_ = true;
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are the program's
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::bad_alloc&) {
    running_ = false;
    log(LogLevel::kInfo, "first messages leave in the next call: no memory for a thread");
  } catch (const std::system_error& failure) {
    running_ = false;
    log(LogLevel::kInfo, "first messages leave in the next call: no thread: {}", failure.what());
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// Calls of the program come first: whoever holds the lock moves the messages as well.
void Settler::run() noexcept {
  constexpr auto kPause = std::chrono::milliseconds(1);
  for (bool more = true; more && !ends_;) {
    if (lock_.try_lock()) {
      network_.push();
      more = network_.unsent();
      if (!more) running_ = false;
      lock_.unlock();
    }
    if (more) std::this_thread::sleep_for(kPause);
  }
}

}  // namespace ibcoll
