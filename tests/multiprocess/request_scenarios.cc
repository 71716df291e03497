// SPDX-License-Identifier: BSD-3-Clause
// PersistentCall requests: restarted, many in flight, completed in any order.
#include <memory>

#include "tests/multiprocess/checked_call.h"
#include "tests/multiprocess/once_call.h"
#include "tests/multiprocess/persistent_call.h"
#include "tests/multiprocess/scenario.h"
#ifdef IBCOLL_COUNTS_ALLOCATIONS
#include "perf/measures/count_allocations.h"
#endif

namespace ibcoll::multiprocess {
namespace {

using Requests = std::vector<std::unique_ptr<PersistentCall>>;

Requests make_requests(const Rank& self, std::initializer_list<uint64_t> sizes) {
  Requests requests;
  uint64_t salt = 0;
  for (const uint64_t bytes : sizes) {
    for (CallParams params : every_collective(bytes, self.size)) {
      params.salt = ++salt;
      requests.push_back(std::make_unique<PersistentCall>(self.world, params));
    }
  }
  return requests;
}

// One after the other, with data that changes in every run.
void restart(Rank& self) {
  const Requests requests = make_requests(self, {1, 1000, 8192, 8193, 70'000});
  for (const auto& request : requests) {
    const uint64_t rounds = request->params().bytes > 10'000 ? 4 : 15;
    for (uint64_t round = 0; round < rounds; ++round)
      if (!request->start(round) || !request->wait(round)) return;
    expect_ok(ibcoll_test(request->get()), "test of an idle request");
    expect_ok(ibcoll_wait(request->get()), "wait for an idle request");
    expect(*ibcoll_request_algorithm(request->get()) != '\0', "the request names no algorithm");
  }
}

// A request in flight refuses to be started, to be freed, and keeps its team and context.
void busy(Rank& self) {
  const TeamOwner team = split(self.world, 0, self.rank);
  CallParams params{.collective = IBCOLL_ALLGATHER, .bytes = 100};
  PersistentCall request(team.get(), params);
  // Rank 0 comes last, so no other rank can complete before it lets it.
  expect_ok(ibcoll_barrier(self.world), "barrier");
  if (self.rank != 0) {
    request.start(1);
    expect_error(ibcoll_start(request.get()), IBCOLL_ERR_BUSY, "in flight", "start while in flight");
    expect_error(ibcoll_request_free(request.get()), IBCOLL_ERR_BUSY, "in flight", "free while in flight");
    expect_error(ibcoll_team_free(team.get()), IBCOLL_ERR_BUSY, "1 requests", "free of a team with a request");
    expect_error(ibcoll_context_destroy(self.context), IBCOLL_ERR_BUSY, "teams exist", "destroy with teams");
    expect_status(ibcoll_test(request.get()), IBCOLL_IN_PROGRESS, "test while rank 0 has not come");
  }
  expect_ok(ibcoll_barrier(self.world), "barrier beside a collective in flight");
  if (self.rank == 0) request.start(1);
  request.wait(1);
}

void complete_in_reverse(const Requests& requests, uint64_t round, bool by_test) {
  for (const auto& request : requests) request->start(round);
  for (auto at = requests.rbegin(); at != requests.rend(); ++at) {
    if (by_test)
      (*at)->test_until_complete(round);
    else
      (*at)->wait(round);
  }
}

// Started in one order, completed in the reverse one.
void in_flight(Rank& self) {
  const Requests requests = make_requests(self, {8, 3000, 40'000});
  for (uint64_t round = 0; round < 6 && complaints() == 0; ++round)
    complete_in_reverse(requests, round, round % 2 == 1);
}

// Calls that run once, three of each shape in flight with buffers of their own, beside blocking ones. In the second
// round all shapes are known.
void once(Rank& self) {
  for (const uint64_t bytes : {uint64_t{8}, uint64_t{3000}, uint64_t{40'000}}) {
    for (CallParams params : every_collective(bytes, self.size)) {
      std::vector<std::unique_ptr<OnceCall>> calls;
      for (params.salt = 1; params.salt <= 3; ++params.salt) {
        if (kCatalog[params.collective].rooted) params.root = (params.root + 1) % self.size;
        calls.push_back(std::make_unique<OnceCall>(self.world, params));
      }
      CheckedCall blocking(self.world, params);
      for (uint64_t round = 0; round < 4; ++round) {
        for (const auto& call : calls)
          if (!call->start(round)) return;
        if (round % 2 == 1 && !blocking.run(round)) return;
        for (auto at = calls.rbegin(); at != calls.rend(); ++at)
          if (!(round < 2 ? (*at)->wait(round) : (*at)->test_until_complete(round))) return;
      }
    }
  }
}

// More than the team's first table of collectives in flight holds, and more than peers may be ahead.
void many_in_flight(Rank& self) {
  Requests requests;
  for (uint64_t i = 0; i < 150; ++i) {
    CallParams params = every_collective(1 + i * 97 % 700, self.size)[i % kCollectives];
    params.salt = i;
    requests.push_back(std::make_unique<PersistentCall>(self.world, params));
  }
  for (uint64_t round = 0; round < 3 && complaints() == 0; ++round) complete_in_reverse(requests, round, false);
}

// Some stay in flight over many others.
void one_stays_in_flight(Rank& self) {
  PersistentCall old(self.world, {.collective = IBCOLL_ALLTOALL, .bytes = 20'000, .salt = 1});
  PersistentCall other(self.world, {.collective = IBCOLL_ALLTOALL, .bytes = 50, .salt = 2});
  old.start(7);
  for (uint64_t round = 0; round < 300 && complaints() == 0; ++round) {
    other.start(round);
    other.wait(round);
  }
  old.wait(7);
}

#ifdef IBCOLL_COUNTS_ALLOCATIONS
// Counts allocations in the rounds from `first` on.
void allocations_of(Rank& self, const CallParams& params, int first, int rounds) {
  CheckedCall call(self.world, params);
  const ibcoll_collective_args_t args = call.args();
  ibcoll_request_t request = nullptr;
  const ibcoll_status_t made = ibcoll_collective_init(self.world, &args, &request);
  if (made == IBCOLL_ERR_NOT_APPLICABLE && params.algorithm) return;
  expect_ok(made, "init");
  uint64_t taken = 0;
  for (int round = 0; round < rounds; ++round) {
    expect_ok(ibcoll_barrier(self.world), "barrier");  // keeps messages that come early to a few
    const uint64_t before = perf::allocations();
    ibcoll_start(request);
    const uint64_t after = perf::allocations();
    expect_ok(ibcoll_wait(request), params.describe());
    if (round >= first) taken += after - before;
  }
  expect(taken == 0, "{}: {} allocations in starts after the first {}", params.describe(), taken, first);
  expect_ok(ibcoll_request_free(request), "free");
}

// After the first runs a start takes no memory from malloc, whatever comes early from other ranks, nor do algorithms that
// have scratch memory.
void allocations(Rank& self) {
  for (const uint64_t bytes : {uint64_t{8}, uint64_t{4000}, uint64_t{60'000}}) {
    for (CallParams params : every_collective(bytes, self.size)) {
      allocations_of(self, params, 1, 60);
      params.algorithm = "single_copy";
      allocations_of(self, params, 1, 60);
    }
  }
}
#endif

constexpr Scenario kRequestScenarios[] = {
    {"restart", restart},
    {"busy", busy},
    {"in_flight", in_flight},
    {"once", once},
    {"many_in_flight", many_in_flight},
    {"one_stays_in_flight", one_stays_in_flight},
#ifdef IBCOLL_COUNTS_ALLOCATIONS
    {"allocations", allocations},
#endif
};

}  // namespace

std::span<const Scenario> request_scenarios() { return kRequestScenarios; }

}  // namespace ibcoll::multiprocess
