// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fake_verbs/job.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>
#include <vector>

#include "runtime/collectives/framework/arguments.h"
#include "runtime/collectives/framework/registry.h"

namespace ibcoll::fake_verbs {
namespace {

constexpr uint64_t kEpoch = 0x7171;  // of the team

}  // namespace

EngineJob::EngineJob(int p, uint64_t seed, std::vector<const char*> settings)
    : random_(seed), ranks_(make_group(p, seed, std::move(settings))) {
  std::vector<int> ranks(static_cast<size_t>(p));
  std::iota(ranks.begin(), ranks.end(), 0);
  EngineLimits limits;
  limits.spill_bytes = 0;  // no rank counts as away, however slow the machine
  const auto placement = std::make_shared<const Placement>(ranks, ranks);
  for (const int rank : ranks) {
    std::vector<Transport*> route(ranks.size(), &ranks_->at(rank));
    route[static_cast<size_t>(rank)] = nullptr;
    engines_.push_back(std::make_unique<Engine>(rank, std::move(route), limits));
    teams_.push_back(std::make_unique<Team>(*engines_.back(), kEpoch, placement, rank, nullptr));
  }
}

std::unique_ptr<Request> EngineJob::request(int rank, CollectiveCase& buffers, const Algorithm& algorithm) {
  Result<Args> args = buffers.args(rank);
  if (!args.ok()) return nullptr;
  const CallParams& params = buffers.params();
  const Choice choice{&algorithm, algorithm.choose ? algorithm.choose(buffers.shape(), CostModel()) : 0};
  auto made = std::make_unique<Request>(*teams_[static_cast<size_t>(rank)], *args, choice, params.scheme,
                                        call_signature(*args, choice.name(), params.scheme, params.p));
  made->hold_counts();
  return made;
}

// None: there is no such algorithm, or it refuses the arguments.
std::vector<std::unique_ptr<Request>> EngineJob::make_requests(CollectiveCase& buffers, const char* name) {
  const Algorithm* const algorithm = find_algorithm(buffers.params().collective, name);
  if (algorithm == nullptr) return {};
  std::vector<std::unique_ptr<Request>> requests;
  for (int rank = 0; rank < buffers.params().p; ++rank) {
    requests.push_back(request(rank, buffers, *algorithm));
    if (!requests.back()) return {};
  }
  return requests;
}

std::vector<EngineJob::End> EngineJob::run_to_its_end(const CallParams& params, const char* algorithm) {
  CollectiveCase buffers(params, 1);
  const std::vector<std::unique_ptr<Request>> requests = make_requests(buffers, algorithm);
  std::vector<Status> started;  // a rank that is late may be refused
  for (size_t rank = 0; rank < requests.size(); ++rank) {
    buffers.at(static_cast<int>(rank)).fill(0);
    for (uint64_t late = random_.below(100); late > 0; --late) progress();
    started.push_back(requests[rank]->start());
  }
  std::vector<int> order(requests.size(), -1);  // -1: it has not ended
  auto scribble_ended = [&, next = 0]() mutable {
    for (size_t rank = 0; rank < requests.size(); ++rank)
      if (order[rank] < 0 && !requests[rank]->in_flight())
        order[rank] = next++, buffers.at(static_cast<int>(rank)).scribble();
    return std::count(order.begin(), order.end(), -1) == 0;
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!scribble_ended()) {
    if (std::chrono::steady_clock::now() > deadline) return {};
    progress();
    for (const auto& engine : engines_) engine->check();
  }
  drain();
  std::vector<End> ends;
  for (size_t rank = 0; rank < requests.size(); ++rank)
    ends.push_back({started[rank].ok() ? requests[rank]->status() : started[rank], order[rank],
                    buffers.at(static_cast<int>(rank)).check_scribbled()});
  return ends;
}

std::string EngineJob::run(const CallParams& params, const char* algorithm, int times) {
  CollectiveCase buffers(params, 1);
  const std::vector<std::unique_ptr<Request>> requests = make_requests(buffers, algorithm);
  if (requests.empty()) return "there is no such call";
  for (uint64_t round = 0; round < static_cast<uint64_t>(times); ++round) {
    for (int rank = 0; rank < params.p; ++rank) {
      buffers.at(rank).fill(round);
      for (uint64_t late = random_.below(20); late > 0; --late) progress();
      if (const Status status = requests[static_cast<size_t>(rank)]->start(); !status.ok()) return status.text();
    }
    if (std::string wrong = wait(requests); !wrong.empty()) return wrong;
    for (int rank = 0; rank < params.p; ++rank)
      if (std::string wrong = buffers.at(rank).check(round); !wrong.empty()) return wrong;
  }
  return "";
}

std::string EngineJob::wait(const std::vector<std::unique_ptr<Request>>& requests) {
  constexpr int kBetweenChecks = 1024;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto in_flight = [](const auto& request) { return request->in_flight(); };
  for (int pass = 0; std::any_of(requests.begin(), requests.end(), in_flight); ++pass) {
    progress();
    if (pass % kBetweenChecks != 0) continue;
    for (const auto& engine : engines_) engine->check();
    if (std::chrono::steady_clock::now() < deadline) continue;
    std::string waits = "after 60 s these wait:\n";
    for (const auto& engine : engines_) waits += engine->describe();
    return waits;
  }
  for (const auto& request : requests)
    if (!request->status().ok()) return request->status().text();
  return "";
}

void EngineJob::drain() {
  for (size_t i = 0; i < 200 * engines_.size(); ++i) progress();
}

std::vector<Counts> EngineJob::counts() const {
  std::vector<Counts> all;
  for (int i = 0; i < ranks_->size(); ++i) all.push_back(rank(i).counts);
  return all;
}

}  // namespace ibcoll::fake_verbs
