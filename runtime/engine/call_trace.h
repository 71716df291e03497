// SPDX-License-Identifier: BSD-3-Clause
// What a request adds to a trace: when each run arrives and ends, and when the program begins to wait for it.
#pragma once

#include <cstdint>

#include "runtime/engine/trace.h"

namespace ibcoll {

class Request;

class CallTrace {
 public:
  // The request outlives it.
  explicit CallTrace(Request& request) noexcept : request_(request) {}

  // Adds what runs from now on to a trace, which outlives this object, as called from `site`. `waits`: the call blocks.
  void enable(TraceBuffer& buffer, const void* site, bool waits) noexcept;
  bool enabled() const noexcept { return buffer_; }
  // A run begins.
  void begin() noexcept {
    if (buffer_) [[unlikely]]
      arrived_at_ = now();
  }
  // The program waits for the request.
  void begin_wait() noexcept;
  // The run has ended, and its exchange still knows what happened.
  void end() noexcept {
    if (buffer_) [[unlikely]]
      add();
  }

 private:
  void add() noexcept;
  int64_t now() const noexcept;

  Request& request_;
  TraceBuffer* buffer_ = nullptr;
  const void* site_ = nullptr;
  int64_t arrived_at_ = 0;   // ns, of the run that is traced
  int64_t waits_from_ = -1;  // ns after its arrival; -1: the program does not wait for it
  uint32_t added_as_ = 0;    // number of the last run in the trace
};

}  // namespace ibcoll
