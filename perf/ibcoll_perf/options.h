// SPDX-License-Identifier: BSD-3-Clause
// The command line of ibcoll_perf.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ibcoll.h"
#include "perf/timed_loop.h"
#include "runtime/base/catalog.h"

namespace ibcoll::perf {

struct Options {
  enum class Format { kTable, kCsv, kJson };

  ibcoll_collective_t collective = static_cast<ibcoll_collective_t>(kCollectives);  // COUNT: none given, as with --list
  std::string algorithm;        // a name, "auto" or "all"; empty: none given
  std::vector<uint64_t> sizes;  // bytes, ascending
  LoopPlan plan;
  int root = 0;
  bool in_place = false;
  bool check = false;
  bool blocking = false;
  bool library_memory = false;  // buffers from ibcoll_mem_alloc
  bool list = false;
  ibcoll_scheme_t scheme = IBCOLL_SCHEME_AUTO;
  Format format = Format::kTable;
  std::string output;  // empty: standard output
};

// What ends the program before it begins: help and version (0), a mistake (2).
struct EarlyEnd {
  int exit_code = 0;
  std::string output, error_output;
};
std::optional<EarlyEnd> parse_options(int argc, const char* const* argv, Options& options);

// "8", "1:1M": MIN, MIN * factor, ... and MAX. Throws CLI::ValidationError on anything else.
std::vector<uint64_t> parse_sizes(const std::string& range, uint64_t factor);

}  // namespace ibcoll::perf
