// SPDX-License-Identifier: BSD-3-Clause
#include "tools/options/sizes.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <limits>

namespace ibcoll {
namespace {

bool read_size(const std::string& text, uint64_t& value) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  std::string digits = text;  // the validator replaces its argument by the number
  try {
    const CLI::AsSizeValue as_size(false);  // K is 1024
    if (!as_size(digits).empty()) return false;
  } catch (const CLI::ValidationError&) {  // above 64 bits with its suffix
    return false;
  }
  // The last: a number that is too large was read as the largest one.
  return CLI::detail::lexical_cast(digits, value) && std::to_string(value) == digits;
}

uint64_t parse_size(const std::string& text, const std::string& range) {
  uint64_t value = 0;
  if (read_size(text, value)) return value;
  throw CLI::ValidationError(
      "--bytes", fmt::format("'{}': MIN:MAX or one size is wanted, below 2^64, with suffixes K, M, G", range));
}

}  // namespace

std::vector<uint64_t> parse_sizes(const std::string& range, uint64_t factor) {
  const size_t colon = range.find(':');
  const uint64_t first = parse_size(range.substr(0, colon), range);
  const uint64_t last = colon == std::string::npos ? first : parse_size(range.substr(colon + 1), range);
  if (first > last) {
    throw CLI::ValidationError("--bytes", fmt::format("'{}': MIN must not be larger than MAX", range));
  }
  std::vector<uint64_t> sizes;
  for (uint64_t bytes = first; bytes < last;) {
    sizes.push_back(bytes);
    if (bytes > std::numeric_limits<uint64_t>::max() / factor) break;
    bytes = bytes == 0 ? 1 : bytes * factor;
  }
  sizes.push_back(last);
  return sizes;
}

}  // namespace ibcoll
