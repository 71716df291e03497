// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

#include "tools/ibcoll_run/byte_queue.h"
#include "tools/ibcoll_run/line_assembler.h"

namespace ibcoll::run {

// The launcher's standard output or standard error, which many sources share. A source that leaves a line unfinished
// (at the end of its stream, or in a very long line) does not get the next source's text into that line. On a
// terminal a line that ends with kPassingEnd stays until anything else is written.
class OutputStream {
 public:
  OutputStream(EventLoop& loop, bool terminal) : queue(loop), terminal_(terminal) {}

  bool terminal() const { return terminal_; }

  void write(int source, std::string_view text) {
    if (text.empty()) return;
    const bool other = source != last_source_;
    if (passing_line_ && other) queue.write("\033[K");  // the cursor is at its beginning
    if (inside_line_ && other) queue.write("\n");
    queue.write(text);
    passing_line_ = terminal_ && text.ends_with(kPassingEnd);
    inside_line_ = text.back() != '\n' && !passing_line_;
    last_source_ = source;
  }

  ByteQueue queue;

 private:
  const bool terminal_;
  bool inside_line_ = false;
  bool passing_line_ = false;  // what is on the terminal's last line may be overwritten
  int last_source_ = -1;
};

}  // namespace ibcoll::run
