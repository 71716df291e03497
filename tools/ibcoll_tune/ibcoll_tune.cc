// SPDX-License-Identifier: BSD-3-Clause
// ibcoll_tune: times the algorithms that apply to calls of a job, and writes the fastest to the file that later jobs of
// this layout read (IBCOLL_TUNING).
//
//   ibcoll_run -n 16 --nodes 4 ibcoll_tune --collective allreduce -m 8:64K
//
// Exit status: 0; 1: ibcoll fails, or the file cannot be written; 2: wrong options.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ibcoll.h"
#include "runtime/base/low_descriptors.h"
#include "tools/ibcoll_tune/tuning_file.h"
#include "tools/options/early_end.h"
#include "tools/options/help.h"
#include "tools/options/not_nan.h"
#include "tools/options/output_file.h"
#include "tools/options/progress.h"
#include "tools/options/sizes.h"
#include "tools/timed_algorithms/timed_algorithms.h"

namespace ibcoll::tune {
namespace {

// An algorithm replaces the predicted one if its median is lower by this factor, and the times hardly overlap.
constexpr double kMargin = 1.1;

struct Options {
  std::vector<ibcoll_collective_t> collectives;
  uint64_t least = 8, most = 1 << 16;
  double seconds = 0.05;
};

// The job of this process.
class TunedJob {
 public:
  TunedJob() { expect_ok(ibcoll_context_create(nullptr, &context_), "ibcoll_context_create"); }
  ~TunedJob() {
    if (context_) (void)ibcoll_context_destroy(context_);
  }
  TunedJob(const TunedJob&) = delete;
  TunedJob& operator=(const TunedJob&) = delete;
  void end() { expect_ok(ibcoll_context_destroy(std::exchange(context_, nullptr)), "ibcoll_context_destroy"); }
  ibcoll_team_t world() const { return ibcoll_team_world(context_); }
  bool is_root() const { return ibcoll_context_rank(context_) == 0; }
  int ranks() const { return ibcoll_team_size(world()); }
  // Rank 0 alone has one.
  TuningFile file() const {
    if (ranks() == 1)
      throw std::runtime_error("one rank has no choice to time; start it as ibcoll_run -n 2 ibcoll_tune");
    std::string text(ibcoll_info_json(context_, nullptr, 0) + 64, '\0');  // a counter may grow by some digits
    (void)ibcoll_info_json(context_, text.data(), text.size());
    const auto tuning = nlohmann::json::parse(text.c_str()).at("tuning");
    const std::string path = tuning.at("file");
    if (path.empty()) throw std::runtime_error("there is no file to write: IBCOLL_TUNING is off, or HOME is not set");
    return TuningFile(path, tuning.at("in_cache"), tuning.at("job"));
  }

 private:
  ibcoll_context_t context_ = nullptr;
};

// Four sizes an octave: calls whose sizes differ by less are one class.
std::vector<uint64_t> sizes_of(const Options& options, const Collective& row) {
  if (!row.moves_data()) return {0};
  std::vector<uint64_t> sizes;
  for (uint64_t bytes = options.least; bytes <= options.most;) {
    sizes.push_back(bytes);
    const uint64_t step = std::max<uint64_t>(sizeof(double), std::bit_floor(bytes) / 4);
    bytes = (bytes / step + 1) * step;
  }
  return sizes;
}

// Another rank has said what is wrong.
struct EndedElsewhere {};

// Rank 0 does it. Where it throws, all ranks do.
template <typename Body>
void on_root(const TunedJob& job, const Stopwatch& watch, Body body) {
  std::exception_ptr problem;
  try {
    if (job.is_root()) body();
  } catch (const std::exception&) {
    problem = std::current_exception();
  }
  if (watch.largest(problem ? 1 : 0) == 0) return;
  if (problem) std::rethrow_exception(problem);
  throw EndedElsewhere();
}

void fail_with(const std::string& problem) {
  if (!problem.empty()) throw std::runtime_error(problem);
}

// Ascending.
std::vector<double> sorted(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times;
}
double quantile(const std::vector<double>& ascending, size_t quarters) {
  return ascending[(ascending.size() - 1) * quarters / 4];
}

// The algorithm to keep: the predicted one, unless another is clearly faster.
const TimedAlgorithm& fastest(const std::vector<TimedAlgorithm>& all, const std::string& predicted) {
  const auto median = [](const TimedAlgorithm& one) { return quantile(sorted(one.us), 2); };
  const auto is_predicted = [&](const TimedAlgorithm& one) { return one.name == predicted; };
  const TimedAlgorithm& expected = *std::find_if(all.begin(), all.end(), is_predicted);
  const TimedAlgorithm& best = *std::min_element(
      all.begin(), all.end(), [&](const TimedAlgorithm& a, const TimedAlgorithm& b) { return median(a) < median(b); });
  const std::vector<double> of_best = sorted(best.us), of_expected = sorted(expected.us);
  const bool apart = quantile(of_best, 3) < quantile(of_expected, 2) && quantile(of_best, 2) < quantile(of_expected, 1);
  return apart && kMargin * median(best) < median(expected) ? best : expected;
}

struct Result {
  std::string line;       // of the table
  nlohmann::json choice;  // null: the calls have no class
};

Result tune_calls(const Options& options, const TunedJob& job, const Stopwatch& watch, const Collective& row,
                  uint64_t bytes) {
  SampleCall call(row, bytes, job.ranks());
  const Decision decision = decision_about(job.world(), call);
  TimingPlan plan;
  plan.seconds = options.seconds;
  plan.time = [&](ibcoll_request_t request, uint64_t count, uint64_t) { return watch.us_of_a_call(request, count); };
  const std::vector<TimedAlgorithm> all =
      time_algorithms(job.world(), call, decision.candidates, decision.predicted, plan);
  const TimedAlgorithm& best = fastest(all, decision.predicted);
  const double us = quantile(sorted(best.us), 2);
  Result result;
  result.line = fmt::format("{:<21} {:>9}  {:<28} {:>10.2f}  {}\n", row.name, bytes, best.name, us,
                            best.name == decision.predicted ? "" : decision.predicted);
  if (decision.key.empty()) return result;
  result.choice = nlohmann::json::parse(decision.key);
  // The parameter is not kept: it depends on what each job times when it starts.
  result.choice["algorithm"] = best.name.substr(0, best.name.find(':'));
  result.choice["trials"] = best.calls;
  result.choice["us"] = us;
  return result;
}

void tune(const Options& options, const TunedJob& job) {
  const Stopwatch watch(job.world());
  std::optional<TuningFile> file;
  OutputFile output;
  on_root(job, watch, [&] {  // before the work
    file = job.file();
    fail_with(output.open(""));
  });
  size_t all = 0, done = 0;
  for (const ibcoll_collective_t collective : options.collectives)
    all += sizes_of(options, kCatalog[collective]).size();
  ProgressLine progress(job.is_root());
  const auto show = [&](const std::string& text) {
    if (!job.is_root()) return;
    output.write(text);
    output.flush();  // so that a long run can be watched
  };
  show(fmt::format("{:<21} {:>9}  {:<28} {:>10}  {}\n", "collective", "bytes", "algorithm", "us", "in place of"));
  for (const ibcoll_collective_t collective : options.collectives) {
    const Collective& row = kCatalog[collective];
    std::vector<nlohmann::json> choices;
    for (const uint64_t bytes : sizes_of(options, row)) {
      progress.show(fmt::format("{} of {} rows done; {} of {} bytes", done++, all, row.name, bytes));
      Result result = tune_calls(options, job, watch, row, bytes);
      progress.clear();
      show(result.line);
      if (!result.choice.is_null()) choices.push_back(std::move(result.choice));
    }
    on_root(job, watch, [&] {
      file->merge(choices);  // not lost if the job is ended
      if (!output.flush()) fail_with(output.commit());
    });
  }
  on_root(job, watch, [&] { fail_with(output.commit()); });
}

std::vector<std::string> collectives() {
  std::vector<std::string> names;
  for (const Collective& row : kCatalog)
    if (sizes_are_known(row)) names.emplace_back(row.name);
  return names;
}

std::optional<EarlyEnd> parse(int argc, char** argv, Options& options) {
  CLI::App app("Times the algorithms of ibcoll on this machine, for later jobs with as many ranks on as many nodes.");
  give_help(app,
            "  ibcoll_run -n 4 ibcoll_tune\n"
            "  ibcoll_run -n 4 ibcoll_tune --collective allreduce,barrier --bytes 8:1M\n");
  std::vector<std::string> names = collectives();
  std::string range = "8:64K";
  app.add_option("--collective", names,
                 "Which: a list such as allreduce,barrier (default: all whose sizes all ranks know)")
      ->delimiter(',')
      ->check(CLI::IsMember(collectives()));
  app.add_option("-m,--bytes", range,
                 "MIN:MAX or one size; bytes per block, multiples of 8; reductions are sums of doubles")
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "For the timed calls of one algorithm of one size")
      ->capture_default_str()
      ->check(CLI::Range(1e-6, 3600.0))
      ->check(not_nan());
  app.set_version_flag("--version", ibcoll_version_string());
  app.callback([&] {
    for (const Collective& row : kCatalog)
      if (std::find(names.begin(), names.end(), row.name) != names.end()) options.collectives.push_back(row.id);
    const std::vector<uint64_t> ends = parse_sizes(range, uint64_t{1} << 32);
    options.least = ends.front();
    options.most = ends.back();
    if (options.least == 0 || options.least % 8 != 0) throw CLI::ValidationError("--bytes", "sizes are multiples of 8");
  });
  return parse_command_line(app, "ibcoll_tune", argc, argv);
}

int run_program(int argc, char** argv) {
  Options options;
  if (const std::optional<EarlyEnd> end = parse(argc, argv, options)) return print(*end, "ibcoll_tune");
  TunedJob job;
  int status = 0;
  try {
    tune(options, job);
  } catch (const EndedElsewhere&) {
    status = 1;
  } catch (const std::runtime_error& problem) {
    fmt::print(stderr, "ibcoll_tune: {}\n", problem.what());
    status = 1;
  }
  job.end();
  return status;
}

}  // namespace
}  // namespace ibcoll::tune

int main(int argc, char** argv) {
  ibcoll::occupy_low_descriptors();
  try {
    return ibcoll::tune::run_program(argc, argv);
  } catch (const std::exception& problem) {
    fmt::print(stderr, "ibcoll_tune: {}\n", problem.what());
    return 1;
  }
}
