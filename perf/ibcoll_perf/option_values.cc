// SPDX-License-Identifier: BSD-3-Clause
// What the words of the command line mean, and which of them go together.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <sstream>

#include "perf/ibcoll_perf/options.h"
#include "runtime/base/catalog.h"
#include "tools/oracle/elements.h"

namespace ibcoll::perf {
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

// The names before ":" in "ring:64K..,shm"; the library reads the rest.
std::vector<std::string> names_in(const std::string& algorithm) {
  std::vector<std::string> names;
  std::istringstream words(algorithm);
  for (std::string word; std::getline(words, word, ',');) names.push_back(word.substr(0, word.find(':')));
  return names;
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

ibcoll_op_t operation_of(const Options& options) {
  for (int i = 0; i < oracle::kOperations; ++i)
    if (options.op == oracle::operation_name(oracle::operation(i))) return oracle::operation(i);
  return oracle::composition();
}

void check_algorithm(const Options& options) {
  if (options.algorithm.empty() || options.algorithm == "auto" || options.algorithm == "all") return;
  if (options.collectives.size() > 1)
    throw CLI::ValidationError(
        "--algorithm", fmt::format("'{}' with all collectives: auto and all are for all of them", options.algorithm));
  const Collective& row = kCatalog[options.collectives[0]];
  std::vector<std::string> known = {"auto"};
  for (int i = 0; const char* name = ibcoll_algorithm_name(row.id, i); ++i) known.emplace_back(name);
  for (const std::string& name : names_in(options.algorithm))
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw CLI::ValidationError("--algorithm", fmt::format("{} has no algorithm '{}'; there are all, {}", row.name,
                                                            name, fmt::join(known, ", ")));
}

void check_operation(const Options& options) {
  const ibcoll_op_t op = operation_of(options);
  if (op == oracle::composition() && options.type.value_or(IBCOLL_UINT64) != IBCOLL_UINT64)
    throw CLI::ValidationError("--op", fmt::format("{} is of --type uint64", options.op));
  const bool of_pairs = op == IBCOLL_MINLOC || op == IBCOLL_MAXLOC;
  if (of_pairs && !options.type)
    throw CLI::ValidationError("--op", fmt::format("{} needs a --type of pairs, such as double_int", options.op));
  if (op != oracle::composition() && options.type && !oracle::has(*options.type, op))
    throw CLI::ValidationError(
        "--op", fmt::format("{} is not defined for --type {}{}", options.op, oracle::type_name(*options.type),
                            oracle::bitwise(op) ? ": it needs an integer --type" : ""));
}

}  // namespace ibcoll::perf
