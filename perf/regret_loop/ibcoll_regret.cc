// SPDX-License-Identifier: BSD-3-Clause
// Times all algorithms of the registry for each collective and size, after the calls by which ibcoll chooses. Repetitions
// alternate in one job, so a disturbance of the machine hits all algorithms. Prints a row for each algorithm and
// repetition; perf/regret judges them. With a pattern of arrivals, also in the calls by which ibcoll chooses, times run
// from the last arrival to the last exit.
#include <ibcoll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "perf/arrival/loop.h"
#include "perf/arrival/prepare.h"
#include "perf/call_times.h"
#include "runtime/base/catalog.h"

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

constexpr int kLearning = 64;                // calls by which ibcoll chooses, at most
constexpr double kFarFromBest = 3;           // an algorithm that takes 3 times as long as the best one is not repeated
constexpr uint64_t kLooks = 4;               // calls, the shortest of which says that
constexpr const char* kLearned = "learned";  // the request that learns, as an algorithm

void check(ibcoll_status_t status, const char* call) {
  if (status == IBCOLL_OK) return;
  std::fprintf(stderr, "ibcoll_regret: %s: %s\n", call, ibcoll_last_error());
  std::exit(1);
}

// What a program would call.
class Call {
 public:
  Call(const Collective& row, uint64_t bytes, int ranks)
      : counts_(static_cast<size_t>(ranks), bytes), send_(bytes * counts_.size()), recv_(bytes * counts_.size()) {
    for (size_t i = 0; i < counts_.size(); ++i) displacements_.push_back(i * bytes);
    args_.struct_size = sizeof args_;
    args_.collective = row.id;
    if (!row.one_buffer) args_.send = send_.data();
    args_.recv = recv_.data();
    if (row.reduces()) args_.type = IBCOLL_DOUBLE, args_.op = IBCOLL_SUM;
    if (row.irregular()) {
      args_.recv_counts = counts_.data();
      if (!row.reduces()) args_.recv_displacements = displacements_.data();
    } else if (row.reduces()) {
      args_.count = bytes / sizeof(double);
    } else {
      args_.bytes = bytes;
    }
  }
  // Its arguments with an algorithm; nullptr: ibcoll chooses.
  const ibcoll_collective_args_t* with(const char* algorithm) {
    args_.algorithm = algorithm;
    return &args_;
  }

 private:
  std::vector<uint64_t> counts_, displacements_;
  std::vector<char> send_, recv_;
  ibcoll_collective_args_t args_{};
};

struct Timed {
  std::string algorithm;
  ibcoll_request_t request = nullptr;
  double once_us = 0;
};

class RegretLoop {
 public:
  RegretLoop(ibcoll_context_t context, const RegretPlan& plan)
      : plan_(plan), context_(context), team_(ibcoll_team_world(context)) {
    check(ibcoll_team_split(team_, 0, 0, &own_), "ibcoll_team_split");
    if (has_arrivals()) require_one_clock();
  }
  ~RegretLoop() { check(ibcoll_team_free(own_), "ibcoll_team_free"); }
  RegretLoop(const RegretLoop&) = delete;
  RegretLoop& operator=(const RegretLoop&) = delete;

  void run() {
    if (speaks()) std::puts("collective,bytes,chosen,predicted,algorithm,repetition,us");
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
  // What run_arrival_loop() calls.
  struct Arriving {
    RegretLoop& loop;
    ibcoll_request_t request;
    bool largest(double& value) {
      value = loop.largest(value);
      return true;
    }
    bool progress() {
      check(ibcoll_progress(loop.context_), "ibcoll_progress");
      return true;
    }
    bool call() {
      run_once(request);
      return true;
    }
  };

  bool speaks() const { return ibcoll_team_rank(team_) == 0; }
  bool has_arrivals() const { return plan_.pattern.kind != ArrivalPattern::Kind::kNone; }

  double largest(double mine) {
    double all = 0;
    check(ibcoll_allreduce(own_, &mine, &all, 1, IBCOLL_DOUBLE, IBCOLL_MAX), "ibcoll_allreduce");
    return all;
  }

  void require_one_clock() {
    const double kernel = kernel_identity();
    if (largest(kernel) == -largest(-kernel)) return;
    if (speaks())
      std::fputs("ibcoll_regret: --arrival: the ranks are on several machines, whose clocks differ\n", stderr);
    std::exit(1);
  }

  static void run_once(ibcoll_request_t request) {
    check(ibcoll_start(request), "ibcoll_start");
    check(ibcoll_wait(request), "ibcoll_wait");
  }

  // Microseconds that the slowest rank needs for one of `count` calls in a row; with arrivals, from the last arrival to
  // the last exit, the median of `count` calls. `first`: that of the pattern.
  double timed(const Timed& one, uint64_t count, uint64_t first = 0) {
    if (has_arrivals()) return timed_arrivals(one.request, count, first);
    check(ibcoll_barrier(own_), "ibcoll_barrier");
    const double begin = now_us();
    for (uint64_t i = 0; i < count; ++i) run_once(one.request);
    return largest((now_us() - begin) / static_cast<double>(count));
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
    check(ibcoll_allreduce(own_, stamps.data(), last.data(), stamps.size(), IBCOLL_DOUBLE, IBCOLL_MAX),
          "ibcoll_allreduce");
    for (size_t i = 0; i < last.size(); i += 2) after.push_back(last[i + 1] - last[i]);
    const auto middle = after.begin() + static_cast<std::ptrdiff_t>(after.size() / 2);
    std::nth_element(after.begin(), middle, after.end());
    return *middle;
  }

  nlohmann::json decision(Call& call) const {
    std::string text(1 << 16, '\0');
    check(ibcoll_explain(team_, call.with(nullptr), text.data(), text.size()), "ibcoll_explain");
    return nlohmann::json::parse(text.c_str());
  }

  Timed request_for(Call& call, const char* algorithm) const {
    Timed one{algorithm ? algorithm : kLearned, nullptr, 0};
    check(ibcoll_collective_init(team_, call.with(algorithm), &one.request), "ibcoll_collective_init");
    return one;
  }

  // Calls of all algorithms. Those that are far from the best one are left out, but for those that are `wanted`.
  void warm(std::vector<Timed>& all, const std::vector<std::string>& wanted) {
    for (Timed& one : all) {
      timed(one, 2);
      one.once_us = timed(one, 1);
    }
    for (uint64_t again = 1; again <= kLooks; ++again)
      for (Timed& one : all) one.once_us = std::min(one.once_us, timed(one, 1, again));
    double best = all.front().once_us;
    for (const Timed& one : all) best = std::min(best, one.once_us);
    std::erase_if(all, [&](const Timed& one) {
      if (one.once_us <= kFarFromBest * best) return false;
      if (std::find(wanted.begin(), wanted.end(), one.algorithm) != wanted.end()) return false;
      check(ibcoll_request_free(one.request), "ibcoll_request_free");
      return true;
    });
  }

  void measure(const Collective& row, uint64_t bytes) {
    Call call(row, bytes, ibcoll_team_size(team_));
    message_us_ = plan_.cost.of(static_cast<double>(bytes));
    std::string predicted;
    double lowest = 0;
    const nlohmann::json before = decision(call);
    for (const auto& candidate : before["candidates"])
      if (predicted.empty() || candidate["cost_us"] < lowest)
        predicted = candidate["algorithm"], lowest = candidate["cost_us"];
    std::vector<Timed> all{request_for(call, nullptr)};
    if (has_arrivals())
      timed_arrivals(all[0].request, kLearning - 1, /*first=*/0);
    else
      for (int i = 0; i <= kLearning; ++i) run_once(all[0].request);
    const std::string chosen = decision(call)["algorithm"];
    std::vector<std::string> names{chosen};  // a class may have other parameters than this very size
    for (const auto& candidate : before["candidates"]) names.push_back(candidate["algorithm"]);
    for (size_t i = 0; i < names.size(); ++i)
      if (i == 0 || names[i] != chosen) all.push_back(request_for(call, names[i].c_str()));
    warm(all, {kLearned, chosen, predicted});
    double slowest = 0;
    for (const Timed& one : all) slowest = std::max(slowest, one.once_us);
    for (uint64_t repetition = 0; repetition < plan_.repetitions; ++repetition) {
      for (size_t i = 0; i < all.size(); ++i) {
        const Timed& one = all[repetition % 2 == 0 ? i : all.size() - 1 - i];
        const double share = plan_.seconds * 1e6 / static_cast<double>(plan_.repetitions);
        // With arrivals the same calls of the pattern for all algorithms.
        const double each = std::max(has_arrivals() ? slowest : one.once_us, 0.01) + plan_.pattern.mif * message_us_;
        const auto count = static_cast<uint64_t>(std::clamp(share / each, 3.0, 2e4));
        const double us = timed(one, count, kLearning + 1 + repetition * count);
        if (speaks())
          std::printf("%s,%llu,%s,%s,%s,%llu,%.3f\n", row.name, static_cast<unsigned long long>(bytes), chosen.c_str(),
                      predicted.c_str(), one.algorithm.c_str(), static_cast<unsigned long long>(repetition), us);
      }
    }
    std::fflush(stdout);
    for (const Timed& one : all) check(ibcoll_request_free(one.request), "ibcoll_request_free");
  }

  RegretPlan plan_;
  ibcoll_context_t context_;
  ibcoll_team_t team_;
  ibcoll_team_t own_ = nullptr;  // for barriers and agreement between timed calls
  double message_us_ = 0;        // T, with arrivals
};

std::vector<std::string> learned_collectives() {
  std::vector<std::string> names;
  for (const Collective& row : kCatalog)
    if (row.waits_for_all()) names.emplace_back(row.name);
  return names;
}

// And those that are predicted always, with blocks of one size.
std::vector<std::string> all_collectives() {
  std::vector<std::string> names;
  for (const Collective& row : kCatalog)
    if (row.waits_for_all() || !row.irregular()) names.emplace_back(row.name);
  return names;
}

}  // namespace
}  // namespace ibcoll::perf

int main(int argc, char** argv) {
  CLI::App app("Times what ibcoll chooses beside all algorithms; prints CSV. perf/regret starts this.");
  ibcoll::perf::RegretPlan plan;
  plan.collectives = ibcoll::perf::learned_collectives();
  app.add_option("--collectives", plan.collectives, "default: those that are learned")
      ->delimiter(',')
      ->check(CLI::IsMember(ibcoll::perf::all_collectives()));
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
  ibcoll::perf::check(ibcoll_context_create(nullptr, &context), "ibcoll_context_create");
  ibcoll::perf::RegretLoop(context, plan).run();
  ibcoll::perf::check(ibcoll_context_destroy(context), "ibcoll_context_destroy");
  return 0;
}
