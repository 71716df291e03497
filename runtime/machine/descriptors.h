// SPDX-License-Identifier: BSD-3-Clause
// Which descriptors ibcoll takes from the program, and how many.
#pragma once

#include <cstdint>

#include "runtime/base/status.h"

namespace ibcoll {

// What is opened while one exists, by any thread, gets descriptors of 3 or above, also where the program runs with 0 to
// 2 closed, as daemons do: what the program prints must not land in a socket or file of ibcoll. Leaves errno alone.
class IBCOLL_MODULE_API HighDescriptors {
 public:
  HighDescriptors() noexcept;
  ~HighDescriptors();
  HighDescriptors(const HighDescriptors&) = delete;
  HighDescriptors& operator=(const HighDescriptors&) = delete;
};

// Libraries that run out of descriptors fail in their own ways: UCX ends the process, or reports ranks that live as
// dead. Ensures that `more` descriptors can be opened; raises the soft limit of the process for that, if it may.
// SYSTEM: the hard limit forbids it, or the soft one where it may not be raised. `what` needs them.
IBCOLL_MODULE_API Status ensure_descriptors(uint64_t more, const char* what, bool may_raise = true);

}  // namespace ibcoll
