// SPDX-License-Identifier: BSD-3-Clause
// Times all algorithms of the registry for each collective and size, after the calls by which ibcoll chooses. Repetitions
// alternate in one job, so a disturbance of the machine hits all algorithms. Prints a row for each algorithm and
// repetition; perf/regret judges them.
#include <ibcoll.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "perf/call_times.h"
#include "runtime/base/catalog.h"

namespace ibcoll::perf {
namespace {

struct RegretPlan {
  std::vector<std::string> collectives;
  uint64_t least_bytes = 8, most_bytes = 512 << 10, factor = 16;
  uint64_t repetitions = 20;
  double seconds = 0.05;  // for all repetitions of one algorithm
};

constexpr int kLearning = 64;                // calls by which ibcoll chooses, at most
constexpr double kFarFromBest = 3;           // an algorithm that takes 3 times as long as the best one is not repeated
constexpr int kLooks = 4;                    // calls, the shortest of which says that
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
  RegretLoop(ibcoll_context_t context, const RegretPlan& plan) : plan_(plan), team_(ibcoll_team_world(context)) {
    check(ibcoll_team_split(team_, 0, 0, &own_), "ibcoll_team_split");
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
  bool speaks() const { return ibcoll_team_rank(team_) == 0; }

  static void run_once(ibcoll_request_t request) {
    check(ibcoll_start(request), "ibcoll_start");
    check(ibcoll_wait(request), "ibcoll_wait");
  }

  // Microseconds that the slowest rank needs for one of `count` calls in a row.
  double timed(const Timed& one, uint64_t count) {
    check(ibcoll_barrier(own_), "ibcoll_barrier");
    const double begin = now_us();
    for (uint64_t i = 0; i < count; ++i) run_once(one.request);
    const double mine = (now_us() - begin) / static_cast<double>(count);
    double slowest = 0;
    check(ibcoll_allreduce(own_, &mine, &slowest, 1, IBCOLL_DOUBLE, IBCOLL_MAX), "ibcoll_allreduce");
    return slowest;
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
    for (int again = 0; again < kLooks; ++again)
      for (Timed& one : all) one.once_us = std::min(one.once_us, timed(one, 1));
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
    std::string predicted;
    double lowest = 0;
    const nlohmann::json before = decision(call);
    for (const auto& candidate : before["candidates"])
      if (predicted.empty() || candidate["cost_us"] < lowest)
        predicted = candidate["algorithm"], lowest = candidate["cost_us"];
    std::vector<Timed> all{request_for(call, nullptr)};
    for (int i = 0; i <= kLearning; ++i) run_once(all[0].request);
    const std::string chosen = decision(call)["algorithm"];
    std::vector<std::string> names{chosen};  // a class may have other parameters than this very size
    for (const auto& candidate : before["candidates"]) names.push_back(candidate["algorithm"]);
    for (size_t i = 0; i < names.size(); ++i)
      if (i == 0 || names[i] != chosen) all.push_back(request_for(call, names[i].c_str()));
    warm(all, {kLearned, chosen, predicted});
    for (uint64_t repetition = 0; repetition < plan_.repetitions; ++repetition) {
      for (size_t i = 0; i < all.size(); ++i) {
        const Timed& one = all[repetition % 2 == 0 ? i : all.size() - 1 - i];
        const double share = plan_.seconds * 1e6 / static_cast<double>(plan_.repetitions);
        const double us = timed(one, static_cast<uint64_t>(std::clamp(share / std::max(one.once_us, 0.01), 3.0, 2e4)));
        if (speaks())
          std::printf("%s,%llu,%s,%s,%s,%llu,%.3f\n", row.name, static_cast<unsigned long long>(bytes), chosen.c_str(),
                      predicted.c_str(), one.algorithm.c_str(), static_cast<unsigned long long>(repetition), us);
      }
    }
    std::fflush(stdout);
    for (const Timed& one : all) check(ibcoll_request_free(one.request), "ibcoll_request_free");
  }

  RegretPlan plan_;
  ibcoll_team_t team_;
  ibcoll_team_t own_ = nullptr;  // for barriers and agreement between timed calls
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
  CLI11_PARSE(app, argc, argv);
  ibcoll_context_t context = nullptr;
  ibcoll::perf::check(ibcoll_context_create(nullptr, &context), "ibcoll_context_create");
  ibcoll::perf::RegretLoop(context, plan).run();
  ibcoll::perf::check(ibcoll_context_destroy(context), "ibcoll_context_destroy");
  return 0;
}
