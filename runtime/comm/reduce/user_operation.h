// SPDX-License-Identifier: BSD-3-Clause
// Whether the calling thread is inside an operation of the program. It has ibcoll's lock then, so a call that takes the
// lock would wait for itself.
#pragma once

#include <atomic>

namespace ibcoll {

class UserOperation {
 public:
  UserOperation() noexcept {
    running_.fetch_add(1, std::memory_order_relaxed);
    runs_ = true;
  }
  UserOperation(const UserOperation&) = delete;
  UserOperation& operator=(const UserOperation&) = delete;
  ~UserOperation() {
    runs_ = false;
    running_.fetch_sub(1, std::memory_order_relaxed);
  }

  // A library that is opened at run time finds its thread-local memory by a call: only where any thread is inside.
  static bool runs() noexcept { return running_.load(std::memory_order_relaxed) > 0 && runs_; }

 private:
  static inline std::atomic<int> running_{0};  // threads
  static inline constinit thread_local bool runs_ = false;
};

}  // namespace ibcoll
