// SPDX-License-Identifier: BSD-3-Clause
#include "tools/timed_algorithms/timed_algorithms.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace ibcoll {
namespace {

constexpr double kFarFromBest = 3;  // an algorithm that takes 3 times as long as the best one is not repeated
constexpr uint64_t kLooks = 4;      // calls, the shortest of which says that
constexpr double kFewestCalls = 3, kMostCalls = 2e4;

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct FreeRequest {
  void operator()(ibcoll_request_t request) const { (void)ibcoll_request_free(request); }
};

struct Running {
  TimedAlgorithm times;
  std::unique_ptr<std::remove_pointer_t<ibcoll_request_t>, FreeRequest> request;
  double once_us = 0;
};

Running start(ibcoll_team_t team, SampleCall& call, const std::string& name) {
  ibcoll_request_t request = nullptr;
  expect_ok(ibcoll_collective_init(team, call.with(name.c_str()), &request), "ibcoll_collective_init");
  Running one;
  one.times.name = name;
  one.request.reset(request);
  return one;
}

// Calls of all algorithms. Those that are far from the best one are left out.
void warm(std::vector<Running>& all, const std::string& wanted, const TimingPlan& plan) {
  for (Running& one : all) {
    plan.time(one.request.get(), 2, 0);
    one.once_us = plan.time(one.request.get(), 1, 0);
  }
  for (uint64_t again = 1; again <= kLooks; ++again)
    for (Running& one : all) one.once_us = std::min(one.once_us, plan.time(one.request.get(), 1, again));
  double best = all.front().once_us;
  for (const Running& one : all) best = std::min(best, one.once_us);
  std::erase_if(all, [&](const Running& one) { return one.once_us > kFarFromBest * best && one.times.name != wanted; });
}

}  // namespace

void expect_ok(ibcoll_status_t status, const char* call) {
  if (status != IBCOLL_OK) throw std::runtime_error(fmt::format("{}: {}", call, ibcoll_last_error()));
}

Decision decision_about(ibcoll_team_t team, SampleCall& call) {
  std::string text(1 << 16, '\0');
  expect_ok(ibcoll_explain(team, call.with(nullptr), text.data(), text.size()), "ibcoll_explain");
  const auto said = nlohmann::json::parse(text.c_str());
  Decision decision;
  decision.algorithm = said.at("algorithm");
  decision.predicted = said.at("predicted");
  for (const auto& candidate : said.at("candidates")) decision.candidates.push_back(candidate.at("algorithm"));
  if (said.contains("class")) decision.key = said.at("class").dump();
  return decision;
}

Stopwatch::Stopwatch(ibcoll_team_t team) { expect_ok(ibcoll_team_split(team, 0, 0, &own_), "ibcoll_team_split"); }

Stopwatch::~Stopwatch() { (void)ibcoll_team_free(own_); }

double Stopwatch::largest(double mine) const {
  double all = 0;
  expect_ok(ibcoll_allreduce(own_, &mine, &all, 1, IBCOLL_DOUBLE, IBCOLL_MAX), "ibcoll_allreduce");
  return all;
}

double Stopwatch::us_of_a_call(ibcoll_request_t request, uint64_t count) const {
  expect_ok(ibcoll_barrier(own_), "ibcoll_barrier");
  const double begin = now_us();
  for (uint64_t i = 0; i < count; ++i) run_once(request);
  return largest((now_us() - begin) / static_cast<double>(count));
}

void Stopwatch::run_once(ibcoll_request_t request) {
  expect_ok(ibcoll_start(request), "ibcoll_start");
  expect_ok(ibcoll_wait(request), "ibcoll_wait");
}

std::vector<TimedAlgorithm> time_algorithms(ibcoll_team_t team, SampleCall& call, const std::vector<std::string>& names,
                                            const std::string& wanted, const TimingPlan& plan) {
  std::vector<Running> all;
  for (const std::string& name : names) all.push_back(start(team, call, name));
  warm(all, wanted, plan);
  double slowest = 0;
  for (const Running& one : all) slowest = std::max(slowest, one.once_us);
  const double share_us = plan.seconds * 1e6 / static_cast<double>(plan.repetitions);
  for (uint64_t repetition = 0; repetition < plan.repetitions; ++repetition)
    for (size_t i = 0; i < all.size(); ++i) {
      Running& one = all[repetition % 2 == 0 ? i : all.size() - 1 - i];
      const double each = std::max(plan.same_counts ? slowest : one.once_us, 0.01) + plan.between_us;
      const auto count = static_cast<uint64_t>(std::clamp(share_us / each, kFewestCalls, kMostCalls));
      one.times.us.push_back(plan.time(one.request.get(), count, kLooks + 1 + repetition * count));
      one.times.calls += count;
    }
  std::vector<TimedAlgorithm> times;
  for (Running& one : all) times.push_back(std::move(one.times));
  return times;
}

}  // namespace ibcoll
