// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/line_assembler.h"

namespace ibcoll::run {

void LineAssembler::add_tagged(std::string_view lines) {
  if (!inside_line_) rest_.insert(0, tag_);
  for (bool first = true; !lines.empty(); first = false) {
    const size_t length = lines.find('\n') + 1;
    if (!first) rest_ += tag_;
    rest_ += lines.substr(0, length);
    lines.remove_prefix(length);
  }
}

}  // namespace ibcoll::run
