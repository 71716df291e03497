// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/line_assembler.h"

namespace ibcoll::run {

void LineAssembler::add_tagged(std::string_view lines) {
  if (!inside_line_) rest_.insert(0, tag_);
  for (bool first = true; !lines.empty(); first = false) {
    size_t length = lines.find_first_of(ends_) + 1;
    if (lines[length - 1] == '\r' && length < lines.size() && lines[length] == '\n') ++length;
    if (!first) rest_ += tag_;
    rest_ += lines.substr(0, length);
    lines.remove_prefix(length);
  }
}

}  // namespace ibcoll::run
