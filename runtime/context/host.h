// SPDX-License-Identifier: BSD-3-Clause
// Host mode: the program that makes the context is a runtime, such as an MPI, which ibcoll serves from inside. It
// progresses while ibcoll waits, decides how long a collective may take, and owns what belongs to the whole process.
#pragma once

#include "runtime/include/ibcoll.h"

namespace ibcoll {

struct HostProgram {
  int (*progress)(void* user) = nullptr;  // nullptr: not in host mode
  void* user = nullptr;
  double timeout_seconds = 0;  // of a collective; 0: none

  static HostProgram of(const ibcoll_bootstrap_t* callbacks) noexcept {
    if (!callbacks) return {};
    return {callbacks->progress, callbacks->user, callbacks->timeout_seconds};
  }
  bool present() const noexcept { return progress != nullptr; }
  // Lets the host progress. True: it moved something. No lock is held.
  bool advance() const { return progress(user) != 0; }
};

}  // namespace ibcoll
