// SPDX-License-Identifier: BSD-3-Clause
// ibcoll_sim --replay: a program's trace on another machine, by other algorithms. See docs/replay.md.
#pragma once

#include <string>
#include <vector>

#include "tools/ibcoll_sim/options.h"
#include "tools/ibcoll_sim/replay/recording.h"
#include "tools/ibcoll_sim/replay/site_times.h"
#include "tools/options/output_file.h"

namespace ibcoll::simulator {

// One run of the program, recorded or played.
struct Variant {
  std::string name;  // "recorded"
  JobTimes times;
  std::vector<std::string> algorithms;  // by call site; none: as recorded
};

struct ReplayResult {
  Recording recording;  // as it was played, perhaps with more ranks
  Options machine;      // that was asked for
  uint64_t calls = 0;
  double startup = 1, bytes = 1;  // factors by which the recorded machine was fitted
  double error = 0;               // of the time in collectives, played on the recorded machine: 0.1 is 10 % too long
  double apart = 0;               // disagreement(), of the same
  bool trusted = false;           // both are small enough to print gains
  std::vector<Variant> variants;  // recorded, as recorded; and where trusted, others
  size_t drawn = 1;               // the variant that a page shows beside what was recorded
  std::vector<Moments> moments;   // of that; none: the run ended before
  std::vector<std::string> notes;
  Status ended;  // why variants are missing: the user has ended the run, or memory would not have sufficed
};

constexpr double kMostError = 0.25, kMostApart = 0.5;

// Once the trace is read, Ctrl-C ends it with the variants that are complete.
Result<ReplayResult> replay(const Options& options);
// As --format asks for.
std::string replay_report(const Options& options, const ReplayResult& result);
// The report, and the time lines of what was recorded and of what was replayed, one above the other.
void write_replay_page(const Options& options, const ReplayResult& result, OutputFile& page);

}  // namespace ibcoll::simulator
