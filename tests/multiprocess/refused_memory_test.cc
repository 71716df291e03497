// SPDX-License-Identifier: BSD-3-Clause
// Memory runs out on one rank: of all that a call allocates, one allocation is refused, one after the other. The call
// returns NO_MEMORY, or completes; the process lives; and the other ranks learn of it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/multiprocess/fork_job.h"
#include "tests/multiprocess/refuse_memory.h"
#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {
namespace {

struct Layout {
  int ranks, nodes;
};
constexpr Layout kLayouts[] = {{3, 1}, {3, 3}, {2, 2}};
constexpr double kSeconds = 200;

bool whole_sweep() {
  const char* const sweep = std::getenv("IBCOLL_TEST_SWEEP");
  return sweep && std::string(sweep) == "all";
}

// The outcome of a round on one rank.
struct Outcome {
  int32_t status = IBCOLL_OK;  // of the call
  int32_t after = IBCOLL_OK;   // of a barrier after it
  int32_t refused = 0;         // an allocation of it was refused
};

constexpr uint64_t kMostRanks = 3;

// A rank, its context, and what is made before the call.
struct Self {
  ForkedRank& rank;
  ibcoll_context_t context = nullptr;
  ibcoll_team_t team = nullptr;
  ibcoll_request_t request = nullptr;
  std::vector<double> from = std::vector<double>(size_t{1} << 16, 1.0), to = from;

  ibcoll_status_t create() {
    const ibcoll_context_params_t params{sizeof params, &rank.bootstrap};
    return ibcoll_context_create(&params, &context);
  }
  ibcoll_team_t world() const { return ibcoll_team_world(context); }
  ibcoll_collective_args_t args(ibcoll_collective_t collective, uint64_t count) {
    ibcoll_collective_args_t args{};
    args.struct_size = sizeof args;
    args.collective = collective;
    args.send = from.data(), args.recv = to.data();
    args.bytes = count * sizeof(double);
    args.count = count, args.type = IBCOLL_DOUBLE, args.op = IBCOLL_SUM;
    return args;
  }
  ibcoll_status_t alltoallv(uint64_t bytes) {
    const uint64_t counts[kMostRanks] = {bytes, bytes, bytes}, displacements[kMostRanks] = {0, bytes, 2 * bytes};
    return ibcoll_alltoallv(world(), from.data(), counts, displacements, to.data(), counts, displacements);
  }
  ibcoll_status_t init(ibcoll_collective_t collective, uint64_t count) {
    const ibcoll_collective_args_t call = args(collective, count);
    return ibcoll_collective_init(world(), &call, &request);
  }
};

enum class Effect {
  kBegins,      // collective: makes the context
  kEnds,        // collective: destroys it
  kFails,       // the ranks' calls do not match
  kLocal,       // other ranks have no part in the call
  kCollective,  // all ranks return the same
  kTeam         // a rank that is done may return OK; the next call on the team says it
};

struct Step {
  const char* name;
  Effect effect;
  void (*prepare)(Self&);
  ibcoll_status_t (*run)(Self&);
};

void nothing(Self&) {}

template <ibcoll_collective_t kCollective, uint64_t kCount>
constexpr void init(Self& self) {
  expect_ok(self.init(kCollective, kCount), "ibcoll_collective_init");
}
ibcoll_status_t run(Self& self) {
  const ibcoll_status_t started = ibcoll_start(self.request);
  return started == IBCOLL_OK ? ibcoll_wait(self.request) : started;
}
template <ibcoll_collective_t kCollective, uint64_t kCount>
ibcoll_status_t once(Self& self) {
  ibcoll_request_t request = nullptr;
  const ibcoll_collective_args_t call = self.args(kCollective, kCount);
  const ibcoll_status_t started = ibcoll_collective_start(self.world(), &call, &request);
  if (started != IBCOLL_OK) return started;
  const ibcoll_status_t ended = ibcoll_wait(request);
  if (ended != IBCOLL_OK) (void)ibcoll_request_free(request);
  return ended;
}

const Step kSteps[] = {
    {"context_create", Effect::kBegins, nothing, [](Self& self) { return self.create(); }},
    {"context_destroy", Effect::kEnds, nothing,
     [](Self& self) { return ibcoll_context_destroy(std::exchange(self.context, nullptr)); }},
    {"mismatch", Effect::kFails, nothing,
     [](Self& self) { return ibcoll_bcast(self.world(), self.to.data(), 100, self.rank.rank == 0 ? 1 : 0); }},
    {"team_create", Effect::kCollective, nothing,
     [](Self& self) {
       const int ranks[] = {2, 0, 1};
       return ibcoll_team_create(self.world(), ranks + 3 - self.rank.size, self.rank.size, &self.team);
     }},
    {"team_split", Effect::kCollective, nothing,
     [](Self& self) { return ibcoll_team_split(self.world(), 0, -self.rank.rank, &self.team); }},
    {"team_create_by_members", Effect::kCollective, nothing,
     [](Self& self) {
       const int ranks[] = {0, 1, 2};
       const ibcoll_bootstrap_t& host = self.rank.bootstrap;
       const ibcoll_members_t members{sizeof members, ranks, self.rank.size, 7, host.allgather, host.user};
       return ibcoll_team_create_by_members(self.context, &members, &self.team);
     }},
    {"init", Effect::kLocal, nothing, [](Self& self) { return self.init(IBCOLL_ALLREDUCE, 100); }},
    {"small_allreduce", Effect::kTeam, init<IBCOLL_ALLREDUCE, 4>, run},
    {"large_allreduce", Effect::kTeam, init<IBCOLL_ALLREDUCE, 1 << 14>, run},
    {"alltoall", Effect::kTeam, init<IBCOLL_ALLTOALL, 1 << 13>, run},
    {"allgather", Effect::kTeam, init<IBCOLL_ALLGATHER, 600>, run},
    {"gather", Effect::kTeam, init<IBCOLL_GATHER, 10>, run},
    {"scan", Effect::kTeam, init<IBCOLL_SCAN, 10>, run},
    {"once", Effect::kTeam, nothing, once<IBCOLL_ALLREDUCE, 50>},
    {"blocking", Effect::kTeam, nothing,
     [](Self& self) { return ibcoll_bcast(self.world(), self.to.data(), 3000, 0); }},
    // One exchange of messages on several nodes, by the plan of a call that was none.
    {"shorter_blocks", Effect::kTeam, [](Self& self) { expect_ok(self.alltoallv(1 << 14), "ibcoll_alltoallv"); },
     [](Self& self) { return self.alltoallv(8); }},
};

class RefusedMemory : public testing::TestWithParam<Layout> {
 protected:
  void SetUp() override {
    if (GetParam().nodes > 1 && !ForkJob::can_emulate_nodes()) GTEST_SKIP() << "no host names of our own here";
    ::setenv("UCX_TLS", "tcp", 1);
    ::setenv("UCX_NET_DEVICES", "lo", 1);
    ::setenv("IBCOLL_LOG", "error", 1);
    ::setenv("IBCOLL_TIMEOUT", "5", 1);
    if (GetParam().nodes > 1) ::setenv("IBCOLL_ALLTOALLV", "direct", 1);
  }
  static void in_job(const std::function<void(ForkedRank&)>& body) {
    const auto counted = [&](ForkedRank& self) {
      body(self);
      return complaints() > 0 ? 1 : 0;
    };
    for (const Ending& ending : ForkJob(GetParam().ranks, GetParam().nodes).run(counted, kSeconds)) {
      EXPECT_TRUE(ending.exited) << (ending.overdue ? "hangs" : "signal ") << ending.code;
      EXPECT_EQ(ending.code, 0);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Nodes, RefusedMemory, testing::ValuesIn(kLayouts), [](const auto& of) {
  return fmt::format("{}_ranks_{}_nodes", of.param.ranks, of.param.nodes);
});

std::vector<Outcome> all_outcomes(ForkedRank& rank, const Outcome& mine) {
  std::vector<Outcome> all(static_cast<size_t>(rank.size));
  if (rank.bootstrap.allgather(rank.bootstrap.user, &mine, all.data(), sizeof mine) != 0) std::_Exit(3);
  return all;
}

void judge(const Step& step, int nodes, uint64_t nth, int victim, int self, const std::vector<Outcome>& all) {
  const Outcome& first = all[static_cast<size_t>(victim)];
  const Outcome& mine = all[static_cast<size_t>(self)];
  const int32_t otherwise = step.effect == Effect::kFails ? IBCOLL_ERR_MISMATCH : IBCOLL_OK;
  // A rank whose network has lost a message cannot reach the one that sent it, and there is no third rank to notify it.
  const auto cut_off = [&](int32_t status) {
    return all.size() == 2 && self != victim && status == IBCOLL_ERR_PEER_FAILED;
  };
  const auto right = [&](int32_t status) {
    return status == otherwise || status == IBCOLL_ERR_NO_MEMORY || cut_off(status);
  };
  expect(right(mine.status), "{}, allocation {} of rank {}: returns {} ({})", step.name, nth, victim, mine.status,
         ibcoll_last_error());
  expect(right(mine.after) && (step.effect == Effect::kFails || mine.after == first.after || cut_off(mine.after)),
         "{}, allocation {} of rank {}: the barrier returns {} ({})", step.name, nth, victim, mine.after,
         ibcoll_last_error());
  if (step.effect == Effect::kCollective || step.effect == Effect::kBegins || step.effect == Effect::kEnds)
    // On several nodes a rank may have all that the call needs of the others while one of these still receives.
    expect(mine.status == first.status || (nodes > 1 && mine.after == IBCOLL_ERR_NO_MEMORY) || cut_off(mine.after),
           "{}, allocation {} of rank {}: returns {} here and {} there", step.name, nth, victim, mine.status,
           first.status);
  if (step.effect == Effect::kLocal)
    expect(mine.after == IBCOLL_OK, "{}, allocation {} of rank {}: the team has failed", step.name, nth, victim);
  if (step.effect == Effect::kTeam)
    expect(mine.status == IBCOLL_OK || mine.after == mine.status,
           "{}, allocation {} of rank {}: the call returns {}, the next one {}", step.name, nth, victim, mine.status,
           mine.after);
}

// Until a round allocates less than that.
void try_all(const Step& step, int nodes, ForkedRank& rank, int victim) {
  Self self{rank};
  for (uint64_t nth = 1; complaints() == 0; ++nth) {
    if (step.effect != Effect::kBegins && !expect_ok(self.create(), "ibcoll_context_create")) return;
    self.team = nullptr, self.request = nullptr;
    step.prepare(self);
    (void)all_outcomes(rank, {});  // a call that fails refuses what others prepare
    if (rank.rank == victim) refuse_allocation(nth);
    Outcome mine;
    mine.status = step.run(self);
    mine.refused = allocation_refused();
    refuse_allocation(0);
    mine.after = self.context ? ibcoll_barrier(self.world()) : mine.status;
    if (self.request) expect_ok(ibcoll_request_free(self.request), "ibcoll_request_free");
    if (self.team) expect_ok(ibcoll_team_free(self.team), "ibcoll_team_free");
    const std::vector<Outcome> all = all_outcomes(rank, mine);
    judge(step, nodes, nth, victim, rank.rank, all);
    // A new team for each round: what a first call allocates, a second one need not.
    expect(ibcoll_context_destroy(std::exchange(self.context, nullptr)) != IBCOLL_ERR_BUSY,
           "{}, allocation {} of rank {}: {}", step.name, nth, victim, ibcoll_last_error());
    if (!all[static_cast<size_t>(victim)].refused) return;
  }
}

TEST_P(RefusedMemory, InACall) {
  for (const Step& step : kSteps) {
    if (step.effect == Effect::kBegins && GetParam().nodes > 1 && !whole_sweep()) continue;  // a minute
    SCOPED_TRACE(step.name);
    in_job([&](ForkedRank& rank) { try_all(step, GetParam().nodes, rank, 1); });
  }
}

}  // namespace
}  // namespace ibcoll::multiprocess
