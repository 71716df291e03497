// SPDX-License-Identifier: BSD-3-Clause
// IBCOLL_TRACE: the file of this rank. It is opened at start, so that a bad name is reported there, and written when
// the context ends. docs/ibcoll_trace.md has its format.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/unique_fd.h"
#include "runtime/engine/trace.h"
#include "runtime/transport/transport.h"

namespace ibcoll {

struct TraceHeader {
  int rank = 0;
  int ranks = 1;
  uint64_t job = 0;
  LinkModel link;  // between ranks of the world team
};

class TraceFile {
 public:
  // nullptr, after one logged error, where the file cannot be opened or memory for the buffer is refused.
  static std::unique_ptr<TraceFile> open(const std::string& setting, size_t calls, size_t peers, int rank);
  TraceBuffer& buffer() noexcept { return buffer_; }
  // Once. An error is logged, and the program goes on.
  void write(const TraceHeader& header) noexcept;

 private:
  TraceFile(std::string path, UniqueFd fd, size_t calls, size_t peers)
      : path_(std::move(path)), fd_(std::move(fd)), buffer_(calls, peers) {}
  std::string path_;
  UniqueFd fd_;
  TraceBuffer buffer_;
};

}  // namespace ibcoll
