// SPDX-License-Identifier: BSD-3-Clause
// How a benchmark calls a collective, in ibcoll and in the libraries it is compared with.
#pragma once

#include <cstdint>

namespace ibcoll::perf {

enum class Calls {
  kPersistent,  // one request, started and waited for again and again
  kBlocking,    // the blocking call
  kOneshot      // the nonblocking call that runs once, then a wait
};
inline constexpr const char* kCallsNames[] = {"persistent", "blocking", "oneshot"};

// Buffers of calls that run once: each call has other buffers than the one before, as in most programs.
class ChangingBuffers {
 public:
  static constexpr uint64_t kRoom = 1024;  // bytes after the end of each buffer
  // Bytes from the start of a buffer; for the next call another one.
  uint64_t next() noexcept { return at_ = (at_ + kStep) % kRoom; }

 private:
  static constexpr uint64_t kStep = 64;
  uint64_t at_ = 0;
};

}  // namespace ibcoll::perf
