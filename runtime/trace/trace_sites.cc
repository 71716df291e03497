// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/trace/trace_sites.h"

#include <fmt/format.h>

#include "runtime/trace/call_site.h"
#include "runtime/trace/python_line.h"

namespace ibcoll {
namespace {

// A word of a line: "-" for nothing, and %20 for a blank.
std::string word(const std::string& text) {
  if (text.empty()) return "-";
  std::string safe;
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    safe += code <= ' ' || letter == '%' || code == 0x7f ? fmt::format("%{:02x}", code) : std::string(1, letter);
  }
  return safe;
}

// "code /home/me/sum 1f2e3d 0x11f3 main+0x33", or of Python "source /home/me/sum.py 12 exchange".
std::string line_of(const void* site) {
  if (const PythonLine* const line = find_python_line(site))
    return fmt::format("source {} {} {}\n", word(line->file), line->line, word(line->function));
  const CodeLocation location = site ? location_of(site) : CodeLocation{};
  return fmt::format("code {} {} {:#x} {}\n", word(location.module), word(location.build_id), location.offset,
                     word(location.symbol));
}

}  // namespace

size_t TraceSites::number(const void* site) {
  const auto [at, is_new] = numbers_.emplace(site, numbers_.size());
  if (is_new) lines_ += line_of(site);
  return at->second;
}

}  // namespace ibcoll
