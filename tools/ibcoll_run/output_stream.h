// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

#include "tools/ibcoll_run/byte_queue.h"

namespace ibcoll::run {

// The launcher's standard output or standard error, which many sources share. A source that leaves a line unfinished
// (the end of its stream, or a piece of a very long line) does not get the next source's text into that line.
class OutputStream {
 public:
  explicit OutputStream(EventLoop& loop) : queue(loop) {}

  void write(int source, std::string_view text) {
    if (text.empty()) return;
    if (inside_line_ && source != last_source_) queue.write("\n");
    queue.write(text);
    inside_line_ = text.back() != '\n';
    last_source_ = source;
  }

  ByteQueue queue;

 private:
  bool inside_line_ = false;
  int last_source_ = -1;
};

}  // namespace ibcoll::run
