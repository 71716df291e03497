// SPDX-License-Identifier: BSD-3-Clause
// The command line of ibcoll_perf.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ibcoll.h"
#include "perf/arrival/figures.h"
#include "perf/arrival/pattern.h"
#include "perf/calls.h"
#include "perf/timed_loop.h"
#include "tools/options/early_end.h"
#include "tools/options/sizes.h"
#include "tools/oracle/distributions.h"

namespace ibcoll::perf {

struct Options {
  enum class Format { kTable, kCsv, kJson };

  std::vector<ibcoll_collective_t> collectives;  // one, or all
  std::string algorithm;        // as ibcoll_collective_args_t has it, "auto" or "all"; empty: none given
  std::vector<uint64_t> sizes;  // bytes, ascending
  LoopPlan plan;
  std::optional<oracle::Distribution> distribution;  // of irregular blocks
  std::optional<ibcoll_type_t> type;                 // of reductions
  std::string op = "sum";
  int root = 0;
  bool in_place = false;
  bool full = false;  // more columns
  bool check = false;
  Calls calls = Calls::kPersistent;
  bool library_memory = false;  // buffers from ibcoll_mem_alloc
  bool list = false;
  std::string arrival;  // as given; empty: calls back to back
  ArrivalPattern pattern;
  std::optional<MessageCost> message_cost;  // nothing: measured
  ibcoll_scheme_t scheme = IBCOLL_SCHEME_AUTO;
  Format format = Format::kTable;
  std::string output;  // empty: standard output
};

// The operation that --op names.
ibcoll_op_t operation_of(const Options& options);

std::optional<EarlyEnd> parse_options(int argc, const char* const* argv, Options& options);

// Throw CLI::ValidationError where --algorithm is none of the collective's, or --op and --type do not go together.
void check_algorithm(const Options& options);
void check_operation(const Options& options);

}  // namespace ibcoll::perf
