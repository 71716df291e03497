// SPDX-License-Identifier: BSD-3-Clause
// The interface of the module libibcoll_trace.so, which is loaded where IBCOLL_TRACE asks for a trace. So
// libibcoll.so has no code that reads stacks or Python's frames, or writes traces.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/config.h"
#include "runtime/engine/trace.h"
#include "runtime/transport/transport.h"

namespace ibcoll {

struct TraceHeader {
  int rank = 0;
  int ranks = 1;
  uint64_t job = 0;
  int node = 0;                 // of this rank, of those of the job
  int cores = 1;                // that this rank may use
  double ranks_per_core = 1;    // on the fullest machine of the job
  LinkModel link;               // between ranks of the world team, while all ranks of a core send
  double copy_us_per_byte = 0;  // of a copy within a node
  double flag_us = 0;           // until a flag in shared memory is seen
};

// The trace of this rank.
class IBCOLL_MODULE_API Tracer {
 public:
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;
  virtual ~Tracer() = default;
  TraceBuffer& buffer() noexcept { return buffer_; }
  // The place where the program called a public function of ibcoll, which returns to `returns_to`. The result is for
  // write() alone: an address of code, or of what the module knows.
  virtual const void* call_site(const void* returns_to) const noexcept = 0;
  // Once. An error is logged, and the program goes on.
  virtual void write(const TraceHeader& header) noexcept = 0;

 protected:
  Tracer(size_t calls, size_t peers) : buffer_(calls, peers) {}

 private:
  TraceBuffer buffer_;
};

// The function ibcoll_trace_open of the module. The caller owns the result (delete). NULL, after one logged error, where
// the file cannot be opened or memory for the buffer is refused.
using OpenTrace = Tracer* (*)(const Config& config, int rank);

}  // namespace ibcoll
