// SPDX-License-Identifier: BSD-3-Clause
// The meaning of the words of the command line, and which of them go together.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "perf/ibcoll_perf/options.h"
#include "runtime/base/catalog.h"
#include "tools/oracle/elements.h"

namespace ibcoll::perf {
namespace {

// The names before ":" in "ring:64K..,shm"; the library reads the rest.
std::vector<std::string> names_in(const std::string& algorithm) {
  std::vector<std::string> names;
  std::istringstream words(algorithm);
  for (std::string word; std::getline(words, word, ',');) names.push_back(word.substr(0, word.find(':')));
  return names;
}

}  // namespace

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
