// SPDX-License-Identifier: BSD-3-Clause
#include "tests/multiprocess/random_program.h"

#include <algorithm>
#include <utility>

namespace ibcoll::multiprocess {
namespace {

constexpr int kSteps = 60;
constexpr size_t kMostTeams = 6, kMostRequests = 12;

bool goes_on() { return complaints() == 0 && deaths_noticed() == 0; }

}  // namespace

RandomProgram::RandomProgram(const Rank& self, uint64_t seed)
    : self_(self), common_(seed), own_(seed * 1000 + static_cast<uint64_t>(self.rank) + 1) {
  teams_.push_back({});
}

void RandomProgram::run() {
  for (int i = 0; i < kSteps && goes_on(); ++i) {
    step();
    tarry();
  }
  while (!requests_.empty() && goes_on()) free_request(requests_.size() - 1);
  while (teams_.size() > 1 && goes_on()) free_team(teams_.size() - 1);
}

void RandomProgram::step() {
  switch (common_.below(8)) {
    case 0:
      if (teams_.size() < kMostTeams) split_one();
      break;
    case 1:
      if (common_.one_in(3)) free_team(common_.below(teams_.size()));
      break;
    case 2:
      if (!requests_.empty() && common_.one_in(3)) free_request(common_.below(requests_.size()));
      break;
    case 3:
      call(common_.below(teams_.size()));
      break;
    case 4:
      if (requests_.size() < kMostRequests) make_request(common_.below(teams_.size()));
      break;
    default:
      if (!requests_.empty()) start(*requests_[common_.below(requests_.size())]);
  }
}

// ---------------------------------------------------------------- teams

// Colors and keys of all ranks are drawn, whichever take part.
void RandomProgram::split_one() {
  const size_t parent = common_.below(teams_.size());
  const uint64_t colors = 1 + common_.below(3);
  int color = 0, key = 0;
  for (int rank = 0; rank < self_.size; ++rank) {
    const int drawn_color = common_.one_in(6) ? -1 : static_cast<int>(common_.below(colors));
    const int drawn_key = static_cast<int>(common_.below(5)) - 2;
    if (rank == self_.rank) color = drawn_color, key = drawn_key;
  }
  teams_.push_back({++teams_made_, team(parent) ? split(team(parent), color, key) : TeamOwner()});
}

// With all its requests. The world stays.
void RandomProgram::free_team(size_t index) {
  if (index == 0) return;
  for (size_t i = requests_.size(); i-- > 0;)
    if (requests_[i]->teams == teams_[index].number) free_request(i);
  if (goes_on()) teams_.erase(teams_.begin() + static_cast<ptrdiff_t>(index));
}

// ---------------------------------------------------------------- calls

CallParams RandomProgram::draw() {
  CallParams params;
  params.collective = static_cast<ibcoll_collective_t>(common_.below(kCollectives));
  const uint64_t magnitude = common_.below(18);
  const Collective& row = kCatalog[params.collective];
  params.bytes = !row.moves_data() ? 0 : common_.below((uint64_t{2} << magnitude) / 2 + 1);
  params.gap = common_.below(3) * 7;
  params.scheme = static_cast<ibcoll_scheme_t>(common_.below(3));
  params.in_place = common_.one_in(4) && row.moves_data() && !row.one_buffer;
  params.salt = common_.below(1 << 20);
  root_ = static_cast<int>(common_.below(1 << 20));
  const int algorithm = static_cast<int>(common_.below(20));  // often past the last: then the library chooses
  params.algorithm = ibcoll_algorithm_name(params.collective, algorithm);
  return params;
}

// Smaller blocks where many ranks receive one from each.
void RandomProgram::fit(CallParams& params, ibcoll_team_t team) const {
  const int p = ibcoll_team_size(team);
  params.root = kCatalog[params.collective].rooted ? root_ % p : 0;
  params.bytes = std::min<uint64_t>(params.bytes, (uint64_t{1} << 19) / static_cast<uint64_t>(p * p));
}

void RandomProgram::make_request(size_t index) {
  CallParams params = draw();
  auto request = std::make_unique<Request>(Request{teams_[index].number, nullptr});
  if (team(index)) {
    fit(params, team(index));
    request->call = std::make_unique<PersistentCall>(team(index), params);
    if (!request->call->applies()) request->call.reset();
  }
  requests_.push_back(std::move(request));
}

void RandomProgram::free_request(size_t index) {
  complete(*requests_[index]);
  if (goes_on()) requests_.erase(requests_.begin() + static_cast<ptrdiff_t>(index));
}

void RandomProgram::start(Request& request) {
  complete(request);
  ++request.round;
  if (request.call) request.in_flight = request.call->start(request.round);
}

void RandomProgram::complete(Request& request) {
  if (!std::exchange(request.in_flight, false)) return;
  switch (own_.below(3)) {
    case 0:
      request.call->wait(request.round);
      break;
    case 1:
      request.call->wait_by_and_by(request.round);
      break;
    default:
      request.call->test_until_complete(request.round);
  }
}

void RandomProgram::call(size_t index) {
  CallParams params = draw();
  ++calls_;
  if (!team(index)) return;
  params.algorithm = nullptr, params.scheme = IBCOLL_SCHEME_AUTO;  // a blocking call has neither
  fit(params, team(index));
  auto checked = std::make_unique<CheckedCall>(team(index), params);
  if (!checked->run(calls_)) failed_.push_back(std::move(checked));
}

void RandomProgram::tarry() {
  switch (own_.below(6)) {
    case 0:
      sleep_seconds(1e-6 * static_cast<double>(own_.below(800)));
      break;
    case 1:
      expect_ok(ibcoll_progress(self_.context), "ibcoll_progress");
      break;
    case 2:
      if (!requests_.empty()) complete(*requests_[own_.below(requests_.size())]);
      break;
    default:
      break;
  }
}

// ---------------------------------------------------------------- after a death

void RandomProgram::give_up() {
  for (auto& checked : failed_) checked->verify_guards(), checked->scribble();
  for (auto& request : requests_) complete(*request);
  for (auto& request : requests_) {
    if (!request->call) continue;
    request->call->checked().verify_guards();
    request->call->checked().scribble();
    request->call->free();
  }
  teams_.erase(teams_.begin() + 1, teams_.end());
}

bool RandomProgram::untouched() const {
  const auto call_is = [](const auto& call) { return call->scribbled(); };
  const auto request_is = [](const auto& request) { return !request->call || request->call->checked().scribbled(); };
  return std::all_of(failed_.begin(), failed_.end(), call_is) &&
         std::all_of(requests_.begin(), requests_.end(), request_is);
}

}  // namespace ibcoll::multiprocess
