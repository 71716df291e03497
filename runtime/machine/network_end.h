// SPDX-License-Identifier: BSD-3-Clause
// UCX has destructors of its own. When the process ends they run before those of libraries that were loaded after UCX,
// which may still use a context. Then UCX must not be called any more.
#pragma once

#include <atomic>

#include "runtime/base/status.h"

namespace ibcoll {

class NetworkEnd {
 public:
  // For a destructor of the network's module.
  IBCOLL_MODULE_API static void come() noexcept;
  static bool has_come() noexcept { return come_.load(std::memory_order_relaxed); }

 private:
  static std::atomic<bool> come_;
};

}  // namespace ibcoll
