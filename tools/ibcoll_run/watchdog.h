// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <pthread.h>

#include "runtime/base/unique_fd.h"

namespace ibcoll::run {

// Ends this process by SIGINT, SIGTERM or SIGHUP when it has not taken that signal for some seconds: it may hang in a
// call of a library or a file server that does not return. A thread checks whether one is pending. The guard (guard.h)
// then ends the ranks, as when the process is killed.
class Watchdog {
 public:
  // After ProcessDefaults::take_over(), which blocks the signals. Where no thread can be made, nothing is watched. Time
  // for which the process was stopped does not count.
  explicit Watchdog(double seconds);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  static void* run(void* self);
  void watch() const;
  bool stops_within(int milliseconds) const;

  int checks_;        // until the process counts as stuck
  UniqueFd signals_;  // readable while one is pending
  UniqueFd stop_;
  pthread_t thread_{};
  bool runs_ = false;
};

}  // namespace ibcoll::run
