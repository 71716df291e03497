// SPDX-License-Identifier: BSD-3-Clause
// One collective at one size: its arguments, and one call of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ibcoll.h"
#include "perf/ibcoll_perf/buffers.h"
#include "perf/ibcoll_perf/job.h"
#include "perf/ibcoll_perf/options.h"
#include "tools/oracle/call_case.h"

namespace ibcoll::perf {

// The text that stands for an algorithm before it is known which one runs.
std::string shown(const std::string& algorithm);

// Bytes of the buffers that a case needs.
struct BufferBytes {
  uint64_t send = 0, recv = 0;
};
BufferBytes buffer_bytes(const PerfJob& job, const Options& options, const Collective& row, uint64_t bytes);

// As run_timed_loop() wants it.
class BenchCase {
 public:
  enum class Ready { kYes, kNotApplicable, kFailed };

  // `buffers` has room for this size: buffer_bytes().
  BenchCase(PerfJob& job, const Options& options, const Buffers& buffers, const Collective& row, uint64_t bytes);
  BenchCase(const BenchCase&) = delete;
  BenchCase& operator=(const BenchCase&) = delete;
  ~BenchCase();

  // Collective: initializes the request; all ranks get the same answer. Not applicable: why() tells. `algorithm` as
  // ibcoll_collective_args_t has it; "": none, as most programs call.
  Ready select(const std::string& algorithm);
  const std::string& algorithm() const { return algorithm_; }  // the one that select() found
  const std::string& why() const { return why_; }

  bool call();
  bool barrier() { return job_.barrier(); }
  bool largest(double& value) { return job_.largest(value); }
  bool progress() {
    const ibcoll_status_t status = ibcoll_progress(job_.context());
    return status == IBCOLL_OK || fail("progress", status);
  }

  PerfJob& job() { return job_; }
  const Options& options() const { return options_; }
  const Collective& row() const { return layout_.row(); }
  // Its bytes, before and after a call; with --check only.
  oracle::CallCase& checked() { return *checked_; }
  uint64_t bytes() const { return bytes_; }
  // "alltoall of 64 bytes by pap_direct"
  std::string title() const;

 private:
  bool fail(const char* step, ibcoll_status_t status);
  ibcoll_status_t blocking_call();
  void change_buffers();

  PerfJob& job_;
  const Options& options_;
  const uint64_t bytes_;
  const oracle::CallLayout layout_;
  std::optional<oracle::CallCase> checked_;
  ibcoll_collective_args_t args_{};
  ChangingBuffers offsets_;
  const std::byte* const send_;  // where the buffers begin
  std::byte* const recv_;
  ibcoll_request_t request_ = nullptr;
  std::string wanted_, algorithm_, why_;
};

}  // namespace ibcoll::perf
