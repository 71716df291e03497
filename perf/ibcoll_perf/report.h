// SPDX-License-Identifier: BSD-3-Clause
// Rows of figures as a table, CSV or JSON, to standard output or a file.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "perf/arrival/figures.h"
#include "perf/call_times.h"
#include "perf/ibcoll_perf/options.h"
#include "tools/options/output_file.h"

namespace ibcoll::perf {

struct Row {
  std::string collective;
  uint64_t bytes = 0;
  uint64_t iterations = 0;
  CallTimes times;
  std::optional<uint64_t> errors;  // nothing: not checked
  std::string algorithm;
  std::optional<ArrivalFigures> arrival;  // with --arrival, also where it did not run
  std::string not_applicable;             // why; empty: it ran
};

// The outcome of all rows.
struct Outcome {
  uint64_t measured = 0;        // rows of algorithms that ran
  uint64_t not_applicable = 0;  // and of those that did not
  uint64_t unverifiable = 0;    // of the measured ones: --check could not verify them
  uint64_t stalls = 0;          // of all ranks: messages that were held back until a rank asked
  uint64_t errors = 0;          // wrong bytes, and whatever else makes the run fail
};

struct Heading {
  int ranks = 1;
  bool checked = false;
  bool full = false;    // with p50 and p90
  std::string arrival;  // line about the pattern; empty: none
};

class Report {
 public:
  Report(OutputFile& output, Options::Format format, Heading heading);

  void begin();
  void begin_collective(const std::string& name);
  void add(const Row& row);
  // Bytes per rank, the largest of all ranks.
  void end(const Outcome& outcome, uint64_t private_memory, uint64_t buffer_memory);

 private:
  OutputFile& output_;
  Options::Format format_;
  Heading heading_;
  std::vector<std::string> collectives_;
  std::vector<Row> rows_;  // for JSON
};

std::string table_line(const Row& row, bool full);
std::string csv_line(const Row& row, bool full);
// With --check: how many rows were verified, and the sum of their errors.
std::string summary_line(const Outcome& outcome);
nlohmann::json json_row(const Row& row, bool full);

}  // namespace ibcoll::perf
