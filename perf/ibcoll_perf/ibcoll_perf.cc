// SPDX-License-Identifier: BSD-3-Clause
// ibcoll_perf: times one collective or all over a range of sizes, and verifies them.
//
//   ibcoll_run -n 16 --nodes 4 ibcoll_perf alltoall --algorithm all --bytes 1:1M --check
//
// Exit status: 0; 1: wrong bytes, a failure or a forced algorithm that does not apply; 2: wrong options.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "perf/ibcoll_perf/arrivals.h"
#include "perf/ibcoll_perf/bench_case.h"
#include "perf/ibcoll_perf/checked_loop.h"
#include "perf/ibcoll_perf/options.h"
#include "perf/ibcoll_perf/plan.h"
#include "perf/ibcoll_perf/report.h"
#include "runtime/base/catalog.h"
#include "runtime/base/low_descriptors.h"
#include "tools/options/progress.h"

namespace ibcoll::perf {
namespace {

std::vector<std::string> algorithms_to_run(const Options& options, const Collective& collective) {
  if (options.algorithm != "all") return {options.algorithm};
  std::vector<std::string> names;
  for (int i = 0; const char* name = ibcoll_algorithm_name(collective.id, i); ++i) names.emplace_back(name);
  return names;
}

// True in `row`: measured or not applicable. False: the job failed.
bool measure(BenchCase& bench, const std::string& algorithm, Arrivals* arrivals, Row& row) {
  row.collective = bench.row().name;
  row.bytes = bench.bytes();
  const BenchCase::Ready ready = bench.select(algorithm);
  if (ready == BenchCase::Ready::kFailed) return false;
  row.algorithm = bench.algorithm();
  if (arrivals != nullptr) row.arrival.emplace();
  if (ready == BenchCase::Ready::kNotApplicable) {
    row.not_applicable = bench.why();
    return true;
  }
  const Options& options = bench.options();
  if (arrivals != nullptr) {
    return arrivals->measure(bench, row);
  }
  std::vector<double> calls, all;
  const bool done = options.check ? run_checked_loop(bench, options.plan, calls, row.errors)
                                  : run_timed_loop(bench, options.plan, calls);
  if (!done || !bench.job().gather(calls, all)) return false;
  row.iterations = calls.size();
  row.times = summarize(all, static_cast<size_t>(bench.job().size()));
  return true;
}

bool measure_collective(PerfJob& job, const Options& options, const Collective& collective, const Buffers& buffers,
                        Arrivals* arrivals, Report* report, Outcome& outcome) {
  const std::vector<std::string> algorithms = algorithms_to_run(options, collective);
  const std::vector<uint64_t> sizes = sizes_of(options, collective);
  if (report != nullptr) report->begin_collective(collective.name);
  ProgressLine progress(report != nullptr);
  size_t done = 0;
  for (const uint64_t bytes : sizes) {
    BenchCase bench(job, options, buffers, collective, bytes);
    for (const std::string& algorithm : algorithms) {
      progress.show(fmt::format("{} of {} rows done; {} bytes, {}", done, sizes.size() * algorithms.size(), bytes,
                                shown(algorithm)));
      Row row;
      const bool fine = measure(bench, algorithm, arrivals, row);
      progress.clear();
      if (!fine) return false;
      ++done;
      if (row.not_applicable.empty()) {
        outcome.measured += 1;
        outcome.errors += row.errors.value_or(0);
        outcome.unverifiable += row.errors ? 0 : 1;
      } else {
        outcome.not_applicable += 1;
      }
      if (report != nullptr) report->add(row);
    }
  }
  return true;
}

// Buffers for the largest size of any collective, on all ranks or on none. What --check compares with takes as much
// again as the larger one.
bool allocate(PerfJob& job, const Options& options, Buffers& buffers) {
  int here = 0;
  if (!ranks_on_this_kernel(job, here)) return false;
  const uint64_t share = available_memory() / static_cast<uint64_t>(here);
  const auto ranks = static_cast<uint64_t>(job.size());
  const bool fits_in_sums = options.sizes.back() <= UINT64_MAX / 32 / ranks / ranks;  // no sum of sizes overflows
  BufferBytes most;
  for (const ibcoll_collective_t id : fits_in_sums ? options.collectives : std::vector<ibcoll_collective_t>()) {
    const Collective& collective = kCatalog[id];
    const BufferBytes bytes = buffer_bytes(job, options, collective, sizes_of(options, collective).back());
    most = {std::max(most.send, bytes.send), std::max(most.recv, bytes.recv)};
  }
  const uint64_t wanted = most.send + most.recv + (options.check ? std::max(most.send, most.recv) : 0);
  return job.agree(
      fits_in_sums && wanted <= share
          ? buffers.allocate(options.library_memory ? job.context() : nullptr, most.send, most.recv)
          : fmt::format("buffers for --bytes {} over {} ranks do not fit into {} MB, a rank's share of the free memory",
                        options.sizes.back(), job.size(), share >> 20));
}

bool run(PerfJob& job, const Options& options, OutputFile& output, Outcome& outcome) {
  Buffers buffers;
  if (!allocate(job, options, buffers)) return false;
  std::optional<Arrivals> arrivals;
  if (!options.arrival.empty() && !arrivals.emplace(job, options).open()) return false;
  Report writer(output, options.format,
                {job.size(), options.check, options.full, arrivals ? arrivals->heading() : std::string()});
  Report* const report = job.rank() == 0 ? &writer : nullptr;
  if (report != nullptr) report->begin();
  for (const ibcoll_collective_t id : options.collectives)
    if (!measure_collective(job, options, kCatalog[id], buffers, arrivals ? &*arrivals : nullptr, report, outcome))
      return false;
  outcome.stalls = job.topology("questions_that_helped");
  if (!job.sum(outcome.stalls)) return false;
  auto held = static_cast<double>(private_memory()), own = static_cast<double>(buffers.total_bytes());
  if (!job.largest(held) || !job.largest(own)) return false;
  if (report != nullptr) report->end(outcome, static_cast<uint64_t>(held), static_cast<uint64_t>(own));
  return true;
}

// Rank 0 alone writes; all learn whether it can.
bool open_output(PerfJob& job, const Options& options, OutputFile& output) {
  return job.agree(job.rank() == 0 ? output.open(options.output) : "");
}

std::string list() {
  std::string text;
  for (int i = 0; i < kCollectives; ++i) {
    const auto collective = static_cast<ibcoll_collective_t>(i);
    text += fmt::format("{}\n", ibcoll_collective_name(collective));
    for (int k = 0; const char* name = ibcoll_algorithm_name(collective, k); ++k) {
      text += fmt::format("  {:<20} {}\n", name, ibcoll_algorithm_about(collective, name));
    }
  }
  return text;
}

int report_failure(PerfJob& job) {
  if (!job.is_open()) {
    fmt::print(stderr, "ibcoll_perf: {}\n", job.failure());  // its rank is not known
  } else if (!job.failure().empty()) {
    fmt::print(stderr, "ibcoll_perf: rank {}: {}\n", job.rank(), job.failure());
  }
  job.abandon();
  return 1;
}

// Options that make no sense together or for this number of ranks. "" or what is wrong.
std::string problem_with(const Options& options, const PerfJob& job) {
  if (options.root >= job.size()) return fmt::format("--root {}: there are {} ranks", options.root, job.size());
  const Collective& first = kCatalog[options.collectives[0]];
  if (options.in_place && options.collectives.size() == 1 && !first.may_be_in_place(options.root, options.root))
    return fmt::format("--in-place: {} has no send buffer", first.name);
  return {};
}

int run_program(int argc, char** argv) {
  Options options;
  PerfJob job;
  if (const std::optional<EarlyEnd> end = parse_options(argc, argv, options)) {
    // Rank 0 prints for all; each rank where it has no rank number.
    return !job.open() || job.rank() == 0 ? print(*end, "ibcoll_perf") : end->status;
  }
  if (!job.open()) return report_failure(job);
  if (options.list) {
    const int status = job.rank() == 0 ? print({0, list(), ""}, "ibcoll_perf") : 0;
    return job.close() ? status : report_failure(job);
  }
  if (const std::string problem = problem_with(options, job); !problem.empty()) {
    if (job.rank() == 0) fmt::print(stderr, "ibcoll_perf: {}\n", problem);
    return 2;
  }
  OutputFile output;
  Outcome outcome;
  if (!open_output(job, options, output) || !run(job, options, output, outcome)) return report_failure(job);
  if (job.rank() == 0) {
    if (const std::string problem = output.commit(); !problem.empty()) {
      fmt::print(stderr, "ibcoll_perf: {}\n", problem);
      outcome.errors += 1;
    }
  }
  if (!job.close()) return report_failure(job);
  if (outcome.stalls > 0 && job.rank() == 0)
    fmt::print(stderr,
               "ibcoll_perf: {} times a message left only when a rank had waited a second for it and asked: a fault of "
               "ibcoll; please report it with this command\n",
               outcome.stalls);
  // With all of them, some do not apply; else one was demanded, also by a variable.
  return outcome.errors > 0 || outcome.stalls > 0 || (outcome.not_applicable > 0 && options.algorithm != "all") ? 1 : 0;
}

}  // namespace
}  // namespace ibcoll::perf

int main(int argc, char** argv) {
  ibcoll::occupy_low_descriptors();
  try {
    return ibcoll::perf::run_program(argc, argv);
  } catch (const std::exception& problem) {
    fmt::print(stderr, "ibcoll_perf: {}\n", problem.what());
    return 1;
  }
}
