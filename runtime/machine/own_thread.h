// SPDX-License-Identifier: BSD-3-Clause
// Threads of ibcoll's own.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/base/log.h"

namespace ibcoll {

// Runs `work` on a new thread, which takes no signals: these are the program's. False: the system gives no thread;
// `otherwise` says in the log what that means.
template <typename Work>
bool start_thread(std::thread& thread, const char* otherwise, Work work) noexcept {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread = std::thread(std::move(work));
  } catch (const std::bad_alloc&) {
    log(LogLevel::kInfo, "{}: no memory for a thread", otherwise);
  } catch (const std::system_error& failure) {
    log(LogLevel::kInfo, "{}: no thread: {}", otherwise, failure.what());
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread.joinable();
}

}  // namespace ibcoll
