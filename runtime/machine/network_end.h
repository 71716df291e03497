// SPDX-License-Identifier: BSD-3-Clause
// UCX has destructors of its own. When the process ends they run before those of libraries that were loaded after UCX,
// which may still use a context, and while other threads may be in the middle of a call. Then UCX must not be called any
// more.
#pragma once

#include <atomic>

#include "runtime/base/status.h"

namespace ibcoll {

class NetworkEnd {
 public:
  // What calls the network's library, for as long as it may.
  class Caller {
   public:
    // `keep_out(of)` returns when no thread is inside of the library, and lets none in again.
    Caller(void (*keep_out)(void* of), void* of) noexcept;
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;
    ~Caller();

   private:
    friend class NetworkEnd;
    void (*const keep_out_)(void*);
    void* const of_;
    Caller* next_ = nullptr;
  };

  // For a destructor of the network's module. Keeps all callers out.
  IBCOLL_MODULE_API static void come() noexcept;
  static bool has_come() noexcept { return come_.load(std::memory_order_relaxed); }

 private:
  static std::atomic<bool> come_;
};

}  // namespace ibcoll
