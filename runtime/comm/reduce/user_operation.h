// SPDX-License-Identifier: BSD-3-Clause
// Whether the calling thread is inside an operation of the program. It has ibcoll's lock then, so a call that takes the
// lock would wait for itself.
#pragma once

namespace ibcoll {

class UserOperation {
 public:
  UserOperation() noexcept { runs_ = true; }
  UserOperation(const UserOperation&) = delete;
  UserOperation& operator=(const UserOperation&) = delete;
  ~UserOperation() { runs_ = false; }

  static bool runs() noexcept { return runs_; }

 private:
  // Of the memory that is there for every thread from its beginning: found without a call of the dynamic linker.
  [[gnu::tls_model("initial-exec")]] static inline constinit thread_local bool runs_ = false;
};

}  // namespace ibcoll
