// SPDX-License-Identifier: BSD-3-Clause
// ibcoll_sim --replay, apart from files and texts: what a rank does follows the simulated end of what it did before.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "tools/ibcoll_sim/replay/best.h"
#include "tools/ibcoll_sim/replay/bound.h"
#include "tools/ibcoll_sim/replay/choices.h"
#include "tools/ibcoll_sim/replay/fit.h"
#include "tools/ibcoll_sim/replay/machine.h"
#include "tools/ibcoll_sim/replay/peers.h"
#include "tools/ibcoll_sim/replay/player.h"
#include "tools/ibcoll_sim/replay/site_times.h"
#include "tools/ibcoll_sim/replay/variants.h"

namespace ibcoll::simulator {
namespace {

constexpr int64_t kUs = 1000;

// A program of ranks with a node each, which is made call by call.
struct Program {
  Recording recording;

  explicit Program(int ranks, int nodes = 0) {
    recording.ranks = ranks;
    recording.teams.emplace_back(static_cast<size_t>(ranks));
    std::iota(recording.teams[0].begin(), recording.teams[0].end(), 0);
    recording.programs.resize(static_cast<size_t>(ranks));
    recording.machine.nodes = nodes == 0 ? ranks : nodes;
    for (int rank = 0; rank < ranks; ++rank)
      recording.machine.node_of.push_back(rank * recording.machine.nodes / ranks);
    recording.machine.alpha_us = 2, recording.machine.cpu_us = 0.5, recording.machine.us_per_byte = 1e-4;
  }

  uint32_t kind(ibcoll_collective_t collective, uint64_t bytes, const char* algorithm = "", int root = 0) {
    CallKind one;
    one.collective = collective, one.bytes = bytes, one.algorithm = algorithm, one.root = root;
    if (one.row().reduces()) one.type = IBCOLL_DOUBLE, one.op = IBCOLL_SUM;
    recording.kinds.push_back(one);
    return static_cast<uint32_t>(recording.kinds.size() - 1);
  }

  // Each rank computes so long before the call.
  void call(uint32_t kind, const std::vector<int64_t>& gaps_us, uint32_t site = 0, Step::What what = Step::What::kRun) {
    while (recording.sites.size() <= site) recording.sites.push_back({recording.kinds[kind].collective, "here"});
    const uint64_t first =
        recording.calls.empty() ? 0 : recording.calls.back().first + static_cast<uint64_t>(recording.ranks);
    recording.calls.push_back({kind, site, first});
    for (int rank = 0; rank < recording.ranks; ++rank)
      recording.programs[static_cast<size_t>(rank)].push_back({what, static_cast<uint32_t>(recording.calls.size() - 1),
                                                               static_cast<uint32_t>(rank),
                                                               gaps_us[static_cast<size_t>(rank)] * kUs});
  }

  // Waits for a call that was started.
  void wait(uint32_t call, const std::vector<int64_t>& gaps_us) {
    for (int rank = 0; rank < recording.ranks; ++rank)
      recording.programs[static_cast<size_t>(rank)].push_back(
          {Step::What::kWait, call, static_cast<uint32_t>(rank), gaps_us[static_cast<size_t>(rank)] * kUs});
  }
};

Options slow_machine(const Recording& recording) {
  Options machine;
  machine.ranks = recording.ranks;
  machine.nodes = recording.machine.nodes;
  machine.placement = recording.machine.node_of;
  return machine;
}

std::vector<Moments> play(const Recording& recording, const Options& machine,
                          const std::string& algorithms = "recorded", double speedup = 1) {
  const KnownCalls calls(recording, machine);
  const Result<std::unique_ptr<Choices>> choices = wanted_choices(calls, algorithms);
  EXPECT_TRUE(choices.ok());
  Player player(calls, *choices.value(), speedup, 0);
  const Status status = player.run();
  EXPECT_TRUE(status.ok()) << status.text();
  return player.moments();
}

TEST(ProgramReplay, ACallComesItsGapAfterTheSimulatedEndOfTheOneBefore) {
  Program program(4);
  const uint32_t barrier = program.kind(IBCOLL_BARRIER, 0, "dissemination");
  program.call(barrier, {10, 20, 30, 100});
  program.call(barrier, {5, 6, 7, 8});
  const std::vector<Moments> at = play(program.recording, slow_machine(program.recording));
  for (size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(at[rank].arrival, std::vector<int64_t>({10, 20, 30, 100})[rank] * kUs);
    EXPECT_GE(at[rank].exit, 100 * kUs);
    EXPECT_EQ(at[4 + rank].arrival, at[rank].exit + (5 + static_cast<int64_t>(rank)) * kUs);
  }
  const std::vector<Moments> faster = play(program.recording, slow_machine(program.recording), "recorded", 2);
  EXPECT_EQ(faster[3].arrival, 50 * kUs);
}

TEST(ProgramReplay, ANonblockingCallIsWaitedForWhereTheProgramDid) {
  Program program(2);
  const uint32_t alltoall = program.kind(IBCOLL_ALLTOALL, 100'000, "direct");
  program.call(alltoall, {0, 0}, 0, Step::What::kStart);
  program.wait(0, {1, 1000});
  program.call(program.kind(IBCOLL_BARRIER, 0, "dissemination"), {3, 3});
  const std::vector<Moments> at = play(program.recording, slow_machine(program.recording));
  EXPECT_EQ(at[0].waits, 1 * kUs);
  EXPECT_GT(at[0].exit, 8 * kUs);  // its 100 KB take 8 us
  EXPECT_EQ(at[2].arrival, at[0].exit + 3 * kUs);
  EXPECT_EQ(at[1].waits, 1000 * kUs);  // by then it is complete
  EXPECT_EQ(at[1].exit, 1000 * kUs);
  EXPECT_EQ(at[3].arrival, 1003 * kUs);
}

TEST(ProgramReplay, LateRanksAndMovingDataAreToldApart) {
  Program program(2);
  const uint32_t barrier = program.kind(IBCOLL_BARRIER, 0, "dissemination");
  program.call(barrier, {0, 500});
  const Options machine = slow_machine(program.recording);
  const KnownCalls calls(program.recording, machine);
  const JobTimes times = job_times(program.recording, play(program.recording, machine), &calls);
  EXPECT_NEAR(times.sites[0].late, 250e-6, 1e-9);  // the mean of 500 us and 0
  EXPECT_GT(times.sites[0].moving, 0);
  EXPECT_NEAR(times.sites[0].bound, 1e-6, 1e-9);  // rank 0 needs a message of 2 us from rank 1
  EXPECT_GE(times.sites[0].moving, times.sites[0].bound);
}

TEST(ProgramReplay, NoAlgorithmIsFasterThanTheBound) {
  for (const int nodes : {8, 2, 1}) {
    for (const ibcoll_collective_t collective :
         {IBCOLL_BARRIER, IBCOLL_BCAST, IBCOLL_ALLGATHER, IBCOLL_ALLTOALL, IBCOLL_ALLREDUCE, IBCOLL_GATHER,
          IBCOLL_SCATTER, IBCOLL_REDUCE, IBCOLL_REDUCE_SCATTER_BLOCK, IBCOLL_SCAN, IBCOLL_EXSCAN})
      for (const uint64_t bytes : {8, 65536})
        for (const int64_t late : {0, 30}) {
          Program program(8, nodes);
          const bool moves = kCatalog[collective].moves_data();
          program.call(program.kind(collective, moves ? bytes : 0), {0, 0, 0, late, 0, 0, 0, 0});
          const Options machine = slow_machine(program.recording);
          const KnownCalls calls(program.recording, machine);
          const JobTimes times = job_times(program.recording, play(program.recording, machine, "auto"), &calls);
          EXPECT_GE(times.sites[0].moving, 0.999 * times.sites[0].bound)
              << kCatalog[collective].name << " " << bytes << " on " << nodes << " nodes, late " << late;
        }
  }
}

TEST(ProgramReplay, ComputingTogetherLeavesNoRankLate) {
  Program program(4);
  program.call(program.kind(IBCOLL_BARRIER, 0, "dissemination"), {0, 100, 200, 300});
  compute_together(program.recording);
  const Options machine = slow_machine(program.recording);
  const std::vector<Moments> at = play(program.recording, machine);
  for (const Moments& one : at) EXPECT_EQ(one.arrival, 150 * kUs);
}

TEST(ProgramReplay, AddedRanksComputeAsTheirModels) {
  Program program(2);
  program.recording.teams.push_back({1});
  const uint32_t gather = program.kind(IBCOLL_ALLGATHER, 1000, "ring");
  for (int64_t i = 1; i <= 20; ++i) program.call(gather, {i, 100 * i});
  const Result<Recording> larger = with_more_ranks(program.recording, 6, ReplayOptions::Scaled::kPerJob, 1);
  ASSERT_TRUE(larger.ok());
  EXPECT_EQ(larger->teams[0].size(), 6U);
  EXPECT_EQ(larger->teams.size(), 4U);  // and three of the team of one rank
  EXPECT_EQ(larger->teams[3], std::vector<int>{5});
  EXPECT_EQ(larger->kinds[0].bytes, 333U);
  const auto gaps = [&](size_t rank) {
    std::vector<int64_t> all;
    for (const Step& step : larger->programs[rank]) all.push_back(step.gap_ns);
    return all;
  };
  for (const size_t rank : {2, 3, 4, 5}) {
    std::vector<int64_t> own = gaps(rank), model = gaps(rank % 2);
    EXPECT_NE(own, model);
    std::sort(own.begin(), own.end());
    EXPECT_EQ(own, model);
    EXPECT_EQ(larger->programs[rank][0].member, rank);
  }
  const Result<Recording> again = with_more_ranks(program.recording, 6, ReplayOptions::Scaled::kFixed, 1);
  EXPECT_EQ(again->kinds[0].bytes, 1000U);
  EXPECT_EQ(again->programs[5][3].gap_ns, larger->programs[5][3].gap_ns);
  EXPECT_EQ(with_more_ranks(program.recording, 5, ReplayOptions::Scaled::kFixed, 1).status().code(),
            IBCOLL_ERR_INVALID_ARGUMENT);
  Options machine = slow_machine(larger.value());
  machine.placement.clear();
  machine.ranks = machine.nodes = 6;
  EXPECT_GT(play(larger.value(), machine, "auto").back().exit, 0);
}

TEST(ProgramReplay, SizesScaleAsAsked) {
  using Scaled = ReplayOptions::Scaled;
  struct Case {
    ibcoll_collective_t collective;
    Scaled scaled;
    uint64_t bytes;  // of 1024, on four times the ranks
  };
  for (const Case& one : {Case{IBCOLL_ALLTOALL, Scaled::kPerRank, 256},
                          {IBCOLL_ALLTOALL, Scaled::kPerJob, 64},
                          {IBCOLL_ALLGATHER, Scaled::kPerRank, 1024},
                          {IBCOLL_ALLGATHER, Scaled::kPerJob, 256},
                          {IBCOLL_ALLREDUCE, Scaled::kPerRank, 1024},
                          {IBCOLL_ALLREDUCE, Scaled::kPerJob, 1024},
                          {IBCOLL_REDUCE_SCATTER_BLOCK, Scaled::kPerJob, 256}}) {
    Program program(2);
    program.call(program.kind(one.collective, 1024), {0, 0});
    const Result<Recording> larger = with_more_ranks(program.recording, 8, one.scaled, 1);
    EXPECT_EQ(larger->kinds[0].bytes, one.bytes) << kCatalog[one.collective].name;
  }
}

// What one machine recorded is replayed on a model of another: the fit finds the factors between them.
TEST(ProgramReplay, TheFitFindsTheMachine) {
  Program program(8, 4);
  std::vector<int64_t> gaps(8);
  for (int i = 0; i < 60; ++i) {
    for (size_t rank = 0; rank < 8; ++rank)
      gaps[rank] = 20 + static_cast<int64_t>((7 * rank + 13 * static_cast<size_t>(i)) % 11);
    program.call(program.kind(IBCOLL_ALLREDUCE, i % 2 == 0 ? 8 : 200'000, "recursive_doubling"), gaps, 0);
    program.call(program.kind(IBCOLL_ALLTOALL, i % 3 == 0 ? 64 : 30'000, "pairwise"), gaps, 1);
  }
  Recording& recording = program.recording;
  Options machine = recorded_machine(recording.machine, 8, Options());
  for (double Options::*const us :
       {&Options::alpha_us, &Options::gap_us, &Options::node_alpha_us, &Options::node_gap_us, &Options::flag_us})
    machine.*us *= 5;
  machine.bandwidth /= 3, machine.node_bandwidth /= 3, machine.copy_bandwidth /= 3;
  recording.moments = play(recording, machine);
  const Result<FittedMachine> fitted = fitted_machine(recording, Options());
  ASSERT_TRUE(fitted.ok());
  EXPECT_NEAR(fitted->startup, 5, 1.2);
  EXPECT_NEAR(fitted->bytes, 3, 0.5);
  EXPECT_LT(disagreement(recording, play(recording, fitted->machine)), 0.15);
  EXPECT_GT(disagreement(recording, play(recording, recorded_machine(recording.machine, 8, Options()))), 0.4);
}

TEST(ProgramReplay, TheBestAlgorithmIsFoundByTrial) {
  Program program(16);
  const uint32_t kind = program.kind(IBCOLL_ALLREDUCE, 1 << 20);
  for (int i = 0; i < 4; ++i) program.call(kind, std::vector<int64_t>(16, 10));
  const Options machine = slow_machine(program.recording);
  const KnownCalls calls(program.recording, machine);
  const Result<std::unique_ptr<Choices>> bad = wanted_choices(calls, "allreduce=recursive_doubling");
  ASSERT_TRUE(bad.ok());
  const std::vector<Moments> slow = play(program.recording, machine, "allreduce=recursive_doubling");
  const Result<BestOfSites> best =
      best_of_sites(calls, *bad.value(), slow, job_times(program.recording, slow, nullptr));
  ASSERT_TRUE(best.ok());
  EXPECT_NE(best->names[0], "");
  EXPECT_NE(best->names[0], "recursive_doubling");
  const std::unique_ptr<Choices> choices = site_choices(calls, best->names, *bad.value());
  Player player(calls, *choices, 1, 0);
  ASSERT_TRUE(player.run().ok());
  EXPECT_LT(player.moments().back().exit, slow.back().exit);
  EXPECT_EQ(player.algorithm(kind, 0).substr(0, best->names[0].size()), best->names[0]);
}

// Also where others are predicted to be faster.
TEST(ProgramReplay, NoAlgorithmIsClearlyFasterThanTheBest) {
  int not_predicted = 0;
  for (const uint64_t bytes : {8, 10'000, 1 << 20})
    for (const int64_t late : {0, 300}) {
      Program program(16);
      const uint32_t kind = program.kind(IBCOLL_ALLREDUCE, bytes);
      std::vector<int64_t> gaps(16, 10);
      gaps[5] += late;
      program.call(kind, gaps);
      const Options machine = slow_machine(program.recording);
      const KnownCalls calls(program.recording, machine);
      const auto seconds = [&](const std::string& algorithm) {
        const std::vector<Moments> at = play(program.recording, machine, "allreduce=" + algorithm);
        return job_times(program.recording, at, nullptr).sum().all();
      };
      const Result<std::unique_ptr<Choices>> present = wanted_choices(calls, "allreduce=ring");
      ASSERT_TRUE(present.ok());
      const std::vector<Moments> at = play(program.recording, machine, "allreduce=ring");
      const Result<BestOfSites> best =
          best_of_sites(calls, *present.value(), at, job_times(program.recording, at, nullptr));
      ASSERT_TRUE(best.ok());
      const double least = seconds(best->names[0].empty() ? "ring" : best->names[0]);
      const Result<std::vector<ibcoll::Candidate>> all =
          ibcoll::candidates(IBCOLL_ALLREDUCE, calls.shape(kind), calls.model(kind), {});
      ASSERT_TRUE(all.ok() && all->size() >= 3);
      for (size_t i = 0; i < 3; ++i) {
        const std::string name = all.value()[i].choice.algorithm->name;
        EXPECT_LE(0.96 * least, seconds(name)) << best->names[0] << ", " << name << ", " << bytes << " bytes";
      }
      not_predicted += best->names[0] != all.value()[0].choice.algorithm->name;
    }
  EXPECT_GT(not_predicted, 0);
}

TEST(ProgramReplay, ExcerptsKeepTheOrderAndTheArrivals) {
  Program program(2);
  const uint32_t barrier = program.kind(IBCOLL_BARRIER, 0, "dissemination");
  for (int64_t i = 0; i < 160; ++i) program.call(barrier, {10 + i % 5, 12});
  Recording& recording = program.recording;
  recording.moments = play(recording, slow_machine(recording));
  const Recording some = excerpt_of(recording, 64);
  EXPECT_EQ(some.calls.size(), 32U);
  EXPECT_EQ(some.programs[0].size(), 32U);
  const std::vector<Moments> again = play(some, slow_machine(some));
  for (size_t i = 0; i < again.size(); ++i) EXPECT_NEAR(again[i].arrival, some.moments[i].arrival, 50) << i;
}

TEST(ProgramReplay, PeersTakeTheAlgorithmsOfTheirTables) {
  Shape shape;
  const auto of = [&](const char* peer, ibcoll_collective_t collective, int p, uint64_t bytes) {
    shape.p = p, shape.bytes = bytes, shape.total = bytes * static_cast<uint64_t>(p);
    return peer_algorithm(peer, collective, shape, false);
  };
  EXPECT_EQ(of("openmpi", IBCOLL_ALLREDUCE, 16, 63), "ring");
  EXPECT_EQ(of("openmpi", IBCOLL_ALLREDUCE, 16, 64), "recursive_doubling");
  EXPECT_EQ(of("openmpi", IBCOLL_ALLREDUCE, 16, 4096), "rabenseifner");
  EXPECT_EQ(of("openmpi", IBCOLL_ALLREDUCE, 200, 8), "");  // a reduce and a bcast
  EXPECT_EQ(of("openmpi", IBCOLL_BCAST, 6, 8192), "knomial:6");
  EXPECT_EQ(of("openmpi", IBCOLL_ALLGATHER, 12, 8), "bruck");
  EXPECT_EQ(of("openmpi", IBCOLL_ALLGATHER, 65, 1000), "ring");
  EXPECT_EQ(of("openmpi", IBCOLL_ALLTOALL, 64, 1023), "bruck:2");
  EXPECT_EQ(of("mpich", IBCOLL_BCAST, 16, 12288), "binomial");
  EXPECT_EQ(of("mpich", IBCOLL_BCAST, 16, 12289), "scatter_allgather");
  EXPECT_EQ(of("mpich", IBCOLL_ALLTOALL, 7, 100), "direct");
  EXPECT_EQ(of("mpich", IBCOLL_ALLTOALL, 8, 256), "bruck:2");
  for (const int p : {8, 12, 100}) {  // the whole message counts, whatever the number of ranks
    EXPECT_EQ(of("mpich", IBCOLL_BCAST, p, 12288), "binomial");
    EXPECT_EQ(of("mpich", IBCOLL_BCAST, p, 12289), "scatter_allgather");
  }
  EXPECT_EQ(of("mpich", IBCOLL_ALLGATHER, 64, 8191), "recursive_doubling");
  EXPECT_EQ(of("mpich", IBCOLL_ALLGATHER, 64, 8192), "ring");
  EXPECT_EQ(of("openmpi", IBCOLL_BCAST, 6, 1 << 20), "chain:16M");  // its fixed decisions cut nothing into segments
  EXPECT_EQ(of("openmpi", IBCOLL_BCAST, 1023, 16384), "binomial");
  EXPECT_EQ(of("openmpi", IBCOLL_BCAST, 1024, 16384), "knomial:4");
  EXPECT_EQ(of("openmpi", IBCOLL_REDUCE_SCATTER_BLOCK, 24, 524288), "");
  EXPECT_EQ(of("openmpi", IBCOLL_REDUCE_SCATTER, 24, 8192), "recursive_halving");  // 192 KB of all ranks
  EXPECT_EQ(of("openmpi", IBCOLL_GATHER, 300, 2048), "linear");
}

// An algorithm that cuts a vector into parts for the ranks needs elements enough.
TEST(ProgramReplay, PeersTakeOthersForFewElements) {
  Shape shape;
  shape.element_bytes = 8;
  const auto of = [&](const char* peer, ibcoll_collective_t collective, int p, uint64_t elements) {
    shape.p = p, shape.bytes = 8 * elements;
    return peer_algorithm(peer, collective, shape, false);
  };
  EXPECT_EQ(of("openmpi", IBCOLL_ALLREDUCE, 6, 1), "recursive_doubling");  // not the ring
  EXPECT_EQ(of("openmpi", IBCOLL_ALLREDUCE, 3, 512), "ring");
  EXPECT_EQ(of("openmpi", IBCOLL_ALLREDUCE, 40, 31), "");  // not rabenseifner, but a reduce and a bcast
  EXPECT_EQ(of("openmpi", IBCOLL_ALLREDUCE, 40, 32), "rabenseifner");
  EXPECT_EQ(of("openmpi", IBCOLL_REDUCE, 3, 0), "linear");
  EXPECT_EQ(of("mpich", IBCOLL_ALLREDUCE, 40, 31), "recursive_doubling");
  EXPECT_EQ(of("mpich", IBCOLL_ALLREDUCE, 40, 32), "rabenseifner");
  EXPECT_EQ(of("mpich", IBCOLL_REDUCE, 600, 511), "binomial");
  EXPECT_EQ(of("mpich", IBCOLL_REDUCE, 600, 512), "reduce_scatter_gather");
}

TEST(ProgramReplay, PeersKeepTheOrderOfOperands) {
  Shape shape;
  shape.commutative = false;
  const auto of = [&](ibcoll_collective_t collective, int p, uint64_t bytes) {
    shape.p = p, shape.bytes = bytes, shape.total = bytes * static_cast<uint64_t>(p);
    return peer_algorithm("openmpi", collective, shape, true);
  };
  EXPECT_EQ(of(IBCOLL_ALLREDUCE, 3, 131071), "recursive_doubling");
  EXPECT_EQ(of(IBCOLL_ALLREDUCE, 3, 131072), "");
  EXPECT_EQ(of(IBCOLL_ALLREDUCE, 511, 4095), "");
  EXPECT_EQ(of(IBCOLL_REDUCE, 7, 8), "linear");
  EXPECT_EQ(of(IBCOLL_REDUCE, 15, 1023), "binomial");
  EXPECT_EQ(of(IBCOLL_REDUCE, 15, 1024), "linear");
  EXPECT_EQ(of(IBCOLL_REDUCE_SCATTER, 15, 1024), "");
  EXPECT_EQ(of(IBCOLL_SCAN, 15, 1024), "linear");
}

// Each name of the tables is one of ibcoll's, and applies to the ranks and sizes for which it stands there.
TEST(ProgramReplay, PeersNameAlgorithmsThatApply) {
  for (const std::string& peer : known_peers())
    for (const Collective& row : kCatalog)
      for (const int p : {2, 3, 6, 8, 13, 24, 33, 100, 300, 600})
        for (const uint64_t bytes : {8, 512, 4096, 65536, 1 << 21}) {
          if (row.irregular()) continue;
          Program program(p);
          const uint32_t kind = program.kind(row.id, row.moves_data() ? bytes : 0);
          const Options machine = slow_machine(program.recording);
          const KnownCalls calls(program.recording, machine);
          const std::string name = peer_algorithm(peer, row.id, calls.shape(kind), false);
          EXPECT_TRUE(name.empty() || applicable_choice(calls, kind, name))
              << peer << ": " << row.name << " of " << bytes << " bytes on " << p << " ranks: " << name;
        }
}

}  // namespace
}  // namespace ibcoll::simulator
