// SPDX-License-Identifier: BSD-3-Clause
// Times all algorithms of the registry for each collective and size, beside what ibcoll chooses. Prints a row for each
// algorithm and repetition; perf/regret judges them. With a pattern of arrivals, times run from the last arrival to the
// last exit.
#include <ibcoll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "perf/arrival/loop.h"
#include "perf/arrival/prepare.h"
#include "runtime/base/catalog.h"
#include "runtime/base/low_descriptors.h"
#include "tools/timed_algorithms/timed_algorithms.h"

namespace ibcoll::perf {
namespace {

struct RegretPlan {
  std::vector<std::string> collectives;
  uint64_t least_bytes = 8, most_bytes = 512 << 10, factor = 16;
  uint64_t repetitions = 20;
  double seconds = 0.05;  // for all repetitions of one algorithm
  ArrivalPattern pattern;
  MessageCost cost;  // T of the pattern
};

class RegretLoop {
 public:
  RegretLoop(ibcoll_context_t context, const RegretPlan& plan)
      : plan_(plan), context_(context), team_(ibcoll_team_world(context)), watch_(team_) {
    if (has_arrivals()) require_one_clock();
  }

  void run() {
    if (speaks()) std::puts("collective,bytes,chosen,algorithm,repetition,us");
    for (const Collective& row : kCatalog) {
      const auto& wanted = plan_.collectives;
      if (std::find(wanted.begin(), wanted.end(), row.name) == wanted.end()) continue;
      for (uint64_t bytes = plan_.least_bytes; bytes <= plan_.most_bytes; bytes *= plan_.factor) {
        measure(row, row.moves_data() ? bytes : 0);
        if (!row.moves_data()) break;
      }
    }
  }

 private:
  // run_arrival_loop() calls these.
  struct Arriving {
    RegretLoop& loop;
    ibcoll_request_t request;
    bool largest(double& value) {
      value = loop.watch_.largest(value);
      return true;
    }
    bool progress() {
      expect_ok(ibcoll_progress(loop.context_), "ibcoll_progress");
      return true;
    }
    bool call() {
      Stopwatch::run_once(request);
      return true;
    }
  };

  bool speaks() const { return ibcoll_team_rank(team_) == 0; }
  bool has_arrivals() const { return plan_.pattern.kind != ArrivalPattern::Kind::kNone; }

  void require_one_clock() {
    const double kernel = kernel_identity();
    if (watch_.largest(kernel) != -watch_.largest(-kernel))
      throw std::runtime_error("--arrival: the ranks are on several machines, whose clocks differ");
  }

  // Microseconds of one of `count` calls; with arrivals the median. `first`: that of the pattern.
  double timed(ibcoll_request_t request, uint64_t count, uint64_t first) {
    return has_arrivals() ? timed_arrivals(request, count, first) : watch_.us_of_a_call(request, count);
  }

  double timed_arrivals(ibcoll_request_t request, uint64_t count, uint64_t first) {
    constexpr int64_t kWarmup = 2;  // by which the loop finds out how long ranks take to agree on an instant
    Arriving calls{*this, request};
    const int ranks = ibcoll_team_size(team_);
    const ArrivalRun run{plan_.pattern,
                         message_us_,
                         ibcoll_team_rank(team_),
                         ranks,
                         /*sleeps=*/ranks > sysconf(_SC_NPROCESSORS_ONLN),
                         /*offset_us=*/0,
                         first};
    std::vector<double> stamps;
    run_arrival_loop(
        calls, {count, kWarmup}, run, [](uint64_t) {}, [](uint64_t) {}, stamps);
    std::vector<double> last(stamps.size()), after;
    expect_ok(ibcoll_allreduce(watch_.own_team(), stamps.data(), last.data(), stamps.size(), IBCOLL_DOUBLE, IBCOLL_MAX),
              "ibcoll_allreduce");
    for (size_t i = 0; i < last.size(); i += 2) after.push_back(last[i + 1] - last[i]);
    const auto middle = after.begin() + static_cast<std::ptrdiff_t>(after.size() / 2);
    std::nth_element(after.begin(), middle, after.end());
    return *middle;
  }

  void measure(const Collective& row, uint64_t bytes) {
    SampleCall call(row, bytes, ibcoll_team_size(team_));
    message_us_ = plan_.cost.of(static_cast<double>(bytes));
    const Decision decision = decision_about(team_, call);
    TimingPlan plan;
    plan.repetitions = plan_.repetitions;
    plan.seconds = plan_.seconds;
    plan.between_us = plan_.pattern.mif * message_us_;
    plan.same_counts = has_arrivals();  // the same calls of the pattern
    plan.time = [this](ibcoll_request_t request, uint64_t count, uint64_t first) {
      return timed(request, count, first);
    };
    const std::vector<TimedAlgorithm> all = time_algorithms(team_, call, decision.candidates, decision.algorithm, plan);
    for (uint64_t repetition = 0; speaks() && repetition < plan_.repetitions; ++repetition)
      for (const TimedAlgorithm& one : all)
        std::printf("%s,%llu,%s,%s,%llu,%.3f\n", row.name, static_cast<unsigned long long>(bytes),
                    decision.algorithm.c_str(), one.name.c_str(), static_cast<unsigned long long>(repetition),
                    one.us[repetition]);
    std::fflush(stdout);
  }

  RegretPlan plan_;
  ibcoll_context_t context_;
  ibcoll_team_t team_;
  Stopwatch watch_;
  double message_us_ = 0;  // T, with arrivals
};

std::vector<std::string> collectives() {
  std::vector<std::string> names;
  for (const Collective& row : kCatalog)
    if (sizes_are_known(row)) names.emplace_back(row.name);
  return names;
}

}  // namespace
}  // namespace ibcoll::perf

int run_program(int argc, char** argv) {
  ibcoll::occupy_low_descriptors();
  CLI::App app("Times what ibcoll chooses beside all algorithms; prints CSV. perf/regret starts this.");
  ibcoll::perf::RegretPlan plan;
  plan.collectives = ibcoll::perf::collectives();
  app.add_option("--collectives", plan.collectives, "default: all whose sizes all ranks know")
      ->delimiter(',')
      ->check(CLI::IsMember(ibcoll::perf::collectives()));
  app.add_option("--least", plan.least_bytes, "bytes of the smallest block, a multiple of 8")
      ->check(CLI::Range(8, 1 << 24));
  app.add_option("--most", plan.most_bytes, "bytes of the largest block")->check(CLI::Range(8, 1 << 24));
  app.add_option("--factor", plan.factor, "from one size to the next")->check(CLI::Range(2, 1 << 20));
  app.add_option("--repetitions", plan.repetitions, "of each algorithm")->check(CLI::Range(4, 10000));
  app.add_option("--seconds", plan.seconds, "for all repetitions of one algorithm")->check(CLI::Range(1e-6, 3600.0));
  app.add_option_function<std::string>(
      "--arrival",
      [&](const std::string& text) {
        const std::string problem = ibcoll::perf::parse_arrival(text, plan.pattern);
        if (!problem.empty()) throw CLI::ValidationError("--arrival", problem);
        if (plan.pattern.kind == ibcoll::perf::ArrivalPattern::Kind::kFile)
          throw CLI::ValidationError("--arrival", "a trace has no delays for so many calls; try random:32");
      },
      "as in ibcoll_perf: none, random:MIF or late:PERCENT:MIF");
  app.add_option_function<std::string>(
      "--message-cost",
      [&](const std::string& text) {
        std::optional<ibcoll::perf::MessageCost> cost;
        const std::string problem = ibcoll::perf::parse_message_cost(text, cost);
        if (!problem.empty()) throw CLI::ValidationError("--message-cost", problem);
        plan.cost = *cost;
      },
      "with --arrival, ALPHA:BETA: T for m bytes is ALPHA + BETA m us");
  CLI11_PARSE(app, argc, argv);
  if (plan.pattern.kind != ibcoll::perf::ArrivalPattern::Kind::kNone && plan.cost.of(1) <= 0) {
    std::fputs("ibcoll_regret: --arrival needs --message-cost ALPHA:BETA; try 60:0.009\n", stderr);
    return 2;
  }
  ibcoll_context_t context = nullptr;
  ibcoll::expect_ok(ibcoll_context_create(nullptr, &context), "ibcoll_context_create");
  ibcoll::perf::RegretLoop(context, plan).run();
  ibcoll::expect_ok(ibcoll_context_destroy(context), "ibcoll_context_destroy");
  return 0;
}

int main(int argc, char** argv) {
  try {
    return run_program(argc, argv);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "ibcoll_regret: %s\n", problem.what());
    return 1;
  }
}
