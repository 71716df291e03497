// SPDX-License-Identifier: BSD-3-Clause
// A text as a field of a line of CSV.
#pragma once

#include <string>

namespace ibcoll {

// Quoted where a comma, a quote or a new line is in it (RFC 4180).
inline std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) result += c == '"' ? std::string("\"\"") : std::string(1, c);
  return result + '"';
}

}  // namespace ibcoll
