// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/line_assembler.h"

#include <algorithm>

namespace ibcoll::run {

std::string LineAssembler::with_cut_end(std::string_view data) {
  if (!terminal_) return {};
  const size_t most = std::min(rest_.size(), kPassingEnd.size() - 1);
  const size_t escape = rest_.find(kPassingEnd.front(), rest_.size() - most);
  if (escape == std::string::npos) return {};
  std::string joined = rest_.substr(escape);
  joined += data;
  rest_.resize(escape);
  return joined;
}

size_t LineAssembler::end_of_last_line(std::string_view text) const {
  const size_t after_newline = text.rfind('\n') + 1;  // npos + 1 is 0
  const size_t passing = terminal_ ? text.rfind(kPassingEnd) : std::string_view::npos;
  return passing == std::string_view::npos ? after_newline : std::max(after_newline, passing + kPassingEnd.size());
}

void LineAssembler::add_tagged(std::string_view lines) {
  if (!inside_line_) rest_.insert(0, tag_);
  for (bool first = true; !lines.empty(); first = false) {
    const size_t newline = lines.find('\n');
    const size_t passing = terminal_ ? lines.substr(0, newline).find(kPassingEnd) : std::string_view::npos;
    const size_t length = passing == std::string_view::npos ? newline + 1 : passing + kPassingEnd.size();
    if (!first) rest_ += tag_;
    rest_ += lines.substr(0, length);
    lines.remove_prefix(length);
  }
}

}  // namespace ibcoll::run
