// SPDX-License-Identifier: BSD-3-Clause
// ibcoll_sim: the algorithms of a collective in one process over a modelled network. See docs/ibcoll_sim.md.
#include <fmt/format.h>

#include <cstdio>
#include <new>

#include "runtime/base/low_descriptors.h"
#include "tools/ibcoll_sim/experiment.h"
#include "tools/ibcoll_sim/options.h"
#include "tools/ibcoll_sim/replay/replay.h"
#include "tools/ibcoll_sim/report.h"
#include "tools/ibcoll_sim/watch.h"
#include "tools/options/output_file.h"

namespace ibcoll::simulator {
namespace {

int fail(const std::string& text, int status) {
  fmt::print(stderr, "ibcoll_sim: {}\n", text);
  return status;
}

int status_of(const Status& status) {
  const ibcoll_status_t code = status.code();
  const bool usage = code == IBCOLL_ERR_INVALID_ARGUMENT || code == IBCOLL_ERR_NOT_APPLICABLE;
  return interrupted() ? 130 : usage ? 2 : 1;
}

int simulate(const Options& options) {
  OutputFile output, trace_file;
  OutputFile* const trace = options.trace.empty() ? nullptr : &trace_file;
  std::string problem = output.open("");
  if (trace) problem = trace->open(options.trace);
  if (!problem.empty()) return fail("--trace: " + problem, 2);
  Report report(options, output);
  bool begun = false;
  uint64_t errors = 0;
  for (const uint64_t bytes : options.sizes) {
    std::vector<Row> rows;
    const Status status = run_size(options, bytes, trace, rows);
    if (!begun && (status.ok() || !rows.empty())) report.begin(), begun = true;
    for (const Row& row : rows) {
      report.add(row);
      errors += row.errors;
      if (!row.damage.empty()) fail(row.damage, 1);
    }
    if (!status.ok()) {
      if (begun) report.end();
      output.flush();
      return fail(status.text(), status_of(status));
    }
    // A large simulation takes hours: it ends as soon as its figures cannot be written.
    if (!output.flush() || (trace && !trace->flush())) break;
  }
  report.end();
  if (trace) problem = trace->commit();
  if (!problem.empty()) return fail("--trace: " + problem, 1);
  problem = output.commit();
  if (!problem.empty()) return fail(problem, 1);
  return errors == 0 ? 0 : 1;
}

int replay_trace(const Options& options) {
  OutputFile page;
  if (!options.replay.html.empty())
    if (const std::string problem = page.open(options.replay.html); !problem.empty())
      return fail("--html: " + problem, 2);
  Result<ReplayResult> result = replay(options);
  if (!result.ok()) return fail(result.status().text(), status_of(result.status()));
  for (const std::string& note : result->notes) fail(note, 0);
  if (const std::string problem = print_all(replay_report(options, *result)); !problem.empty()) return fail(problem, 1);
  if (!options.replay.html.empty() && !result->moments.empty()) {
    write_replay_page(options, *result, page);
    if (const std::string problem = page.commit(); !problem.empty()) return fail("--html: " + problem, 1);
  }
  if (!result->ended.ok()) return fail(result->ended.text(), status_of(result->ended));
  if (result->trusted) return 0;
  return fail(
      fmt::format("the replay on the recorded machine takes {:+.0f} % longer in collectives (at most {:.0f} % is "
                  "wanted), and call sites and sizes are {:.0f} % off (at most {:.0f} %), so no other machine is "
                  "shown; record it where each rank has a core",
                  100 * result->error, 100 * kMostError, 100 * result->apart, 100 * kMostApart),
      1);
}

}  // namespace
}  // namespace ibcoll::simulator

int main(int argc, char** argv) {
  ibcoll::occupy_low_descriptors();
  using namespace ibcoll::simulator;
  Options options;
  catch_interrupts();
  if (const auto end = parse_options(argc, argv, options)) return ibcoll::print(*end, "ibcoll_sim");
  try {
    return options.replay.path.empty() ? simulate(options) : replay_trace(options);
  } catch (const std::bad_alloc&) {
    return fail("out of memory; use fewer ranks or smaller blocks", 1);
  }
}
