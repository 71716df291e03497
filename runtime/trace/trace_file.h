// SPDX-License-Identifier: BSD-3-Clause
// IBCOLL_TRACE: the file of this rank. It is opened at start, so that a bad name is reported there, and written when
// the context ends. docs/ibcoll_trace.md has its format.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "runtime/base/unique_fd.h"
#include "runtime/engine/tracer.h"
#include "runtime/trace/call_site.h"

namespace ibcoll {

class TraceFile final : public Tracer {
 public:
  // nullptr, after one logged error, where the file cannot be opened or memory for the buffer is refused.
  static std::unique_ptr<TraceFile> open(const std::string& setting, size_t calls, size_t peers, int rank);
  const void* call_site(const void* returns_to) const noexcept override { return program_call_site(returns_to); }
  void write(const TraceHeader& header) noexcept override;

 private:
  TraceFile(std::string path, UniqueFd fd, size_t calls, size_t peers)
      : Tracer(calls, peers), path_(std::move(path)), fd_(std::move(fd)) {}
  std::string path_;
  UniqueFd fd_;
};

}  // namespace ibcoll
