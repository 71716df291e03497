// SPDX-License-Identifier: BSD-3-Clause
#include "tools/traces/printable.h"

#include <fmt/format.h>

#include <cstdint>

namespace ibcoll::tracing {
namespace {

// Bytes of the printable character at the beginning; 0: there is none. RFC 3629.
size_t character(std::string_view text) {
  const auto byte = [&](size_t at) { return at < text.size() ? static_cast<uint8_t>(text[at]) : uint8_t{0}; };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return lead >= 0x20 && lead != 0x7f ? 1 : 0;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  for (size_t at = 1; at < length; ++at)
    if ((byte(at) & 0xc0) != 0x80) return 0;
  const uint8_t second = byte(1);
  const bool control = lead == 0xc2 && second < 0xa0;  // among them a terminal's CSI in one character
  const bool longer_than_needed = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool no_character = (lead == 0xed && second >= 0xa0) || (lead == 0xf4 && second >= 0x90);
  return control || longer_than_needed || no_character ? 0 : length;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const size_t length = character(text);
    if (length > 0)
      safe += text.substr(0, length);
    else
      safe += fmt::format("\\x{:02x}", static_cast<uint8_t>(text[0]));
    text.remove_prefix(length > 0 ? length : 1);
  }
  return safe;
}

}  // namespace ibcoll::tracing
