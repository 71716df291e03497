// SPDX-License-Identifier: BSD-3-Clause
// Arrival awareness: while one rank is late, the others finish all that is among themselves, and when it comes, only
// its own blocks are left. The advertisement is the arrival notice: no message exists for that alone.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string_view>

#include "runtime/collectives/framework/registry.h"
#include "tests/simulated/replay.h"
#include "tests/simulated/scenario.h"

namespace ibcoll {
namespace {

struct Late {
  ibcoll_collective_t collective;
  const char* algorithm;
  ibcoll_scheme_t scheme;
  uint64_t bytes;
  std::vector<int> nodes;  // of each rank
  int rank;                // the late one
  Time by;
  bool no_wait_for_the_node = false;  // asked for though the algorithm does not promise it
  uint64_t parameter = 0;             // 0: what the algorithm chooses
  uint64_t seed = 0;                  // 0: all messages take the same time

  bool lanes() const { return no_wait_for_the_node || std::string_view(algorithm) == "pap_shm_lanes"; }
  bool shm() const { return std::string_view(algorithm).find("shm") != std::string_view::npos; }
};

// Only these blocks may wait for the late rank: its own; and where leaders send for all, those of its node; else, those
// that it hosts: what ranks of other nodes send to its node by it.
bool may_wait(const Late& late, const Placement& nodes, int from, int to) {
  const int there = nodes.node_of(late.rank);
  if (from == late.rank || to == late.rank) return true;
  if (!late.lanes()) return late.shm() && (nodes.node_of(from) == there || nodes.node_of(to) == there);
  if (nodes.node_of(to) != there || nodes.node_of(from) == there) return false;
  int position = 0;
  while (nodes.rank_at(position) != from) ++position;
  const std::span<const int> ranks = nodes.ranks_of(there);
  return ranks[static_cast<size_t>(position) % ranks.size()] == late.rank;
}

// Messages that other ranks send to the late one once it has come.
class SentToLateRank final : public sim::Observer {
 public:
  explicit SentToLateRank(int late) : late_(late) {}
  void has_come() { has_come_ = true; }
  uint64_t messages() const { return messages_; }
  void posts(sim::Message& message) override { messages_ += has_come_ && message.to == late_; }

 private:
  int late_;
  bool has_come_ = false;
  uint64_t messages_ = 0;
};

struct Outcome {
  bool others_were_done = true;  // when the late rank came
  std::string missing;           // blocks that were not there then
  bool left_before = false;      // a rank had left the call by then
  Time after_arrival = 0;        // from then to the last exit
  Time late_rank_done = 0;       // from its arrival to when all was there for it
  sim::Counters at_arrival;      // what had been sent when it came
  sim::Counters counters;
  uint64_t sent_to_late_rank = 0;  // messages, once it has come
};

bool gathers(ibcoll_collective_t collective) { return collective == IBCOLL_GATHER || collective == IBCOLL_GATHERV; }

Outcome run_late(const Late& late) {
  const int p = static_cast<int>(late.nodes.size());
  SimJobParams params;
  params.network.ranks = p;
  params.network.node_of = late.nodes;
  if (late.seed > 0)
    params.network.seed = late.seed;
  else
    params.network.between_nodes.jitter_ns = params.network.within_node.jitter_ns = 0;
  params.lazy = 0;
  params.window_area_bytes = 1 << 20;
  SimJob job(params);
  const int team = job.make_world();
  CallParams wanted;
  wanted.collective = late.collective;
  wanted.p = p;
  wanted.bytes = late.bytes;
  if (wanted.row().irregular()) wanted.sizes = [bytes = late.bytes](int, int) { return bytes; };
  if (wanted.row().reduces()) wanted.op = IBCOLL_SUM, wanted.count = late.bytes / wanted.element_bytes();
  if (gathers(late.collective)) wanted.root = late.rank;
  wanted.scheme = late.scheme;
  CollectiveCase call(wanted, 17);
  Outcome outcome;
  SentToLateRank sent(late.rank);
  job.network().watch(&sent);
  Time arrived = 0;
  std::vector<std::unique_ptr<Request>> requests;
  for (int rank = 0; rank < p; ++rank) {
    requests.push_back(
        make_request(job.team(team, rank), call, *find_algorithm(late.collective, late.algorithm), late.parameter));
    SimStep step;
    step.request = requests.back().get();
    if (rank == late.rank) step.delay_ns = late.by;
    step.before_start = [&, rank] {
      call.at(rank).fill(0);
      if (rank != late.rank) return;
      arrived = job.network().now();
      outcome.at_arrival = job.network().counters();
      sent.has_come();
      if (wanted.row().reduces() || gathers(late.collective)) return;
      for (int to = 0; to < p; ++to)
        for (int from = 0; from < p; ++from)
          if (!may_wait(late, job.placement(team), from, to) && !call.at(to).has_block(from, 0)) {
            outcome.others_were_done = false;
            outcome.missing += fmt::format(" {}->{}", from, to);
          }
    };
    step.completed = [&, rank](const Status& status) {
      EXPECT_TRUE(status.ok()) << status.text();
      EXPECT_EQ(call.at(rank).check(0), "");
      outcome.left_before |= arrived == 0;
      outcome.after_arrival = job.network().now() - arrived;
      if (rank == late.rank) outcome.late_rank_done = outcome.after_arrival;
    };
    job.add_step(rank, std::move(step));
  }
  const Status status = job.run();
  EXPECT_TRUE(status.ok()) << status.text();
  outcome.counters = job.network().counters();
  outcome.sent_to_late_rank = sent.messages();
  return outcome;
}

constexpr Time kLate = 50'000'000;

std::vector<int> node_layout(int p, int kind) {
  std::vector<int> nodes(static_cast<size_t>(p));
  sim::Random random(static_cast<uint64_t>(100 * p + kind));
  for (int rank = 0; rank < p; ++rank)
    nodes[static_cast<size_t>(rank)] = kind == 0   ? rank
                                       : kind == 1 ? rank / 4
                                                   : static_cast<int>(random.below(static_cast<uint64_t>(1 + p / 3)));
  return nodes;
}

bool applies_to(const Late& late) {
  std::vector<int> all(late.nodes.size());
  std::iota(all.begin(), all.end(), 0);
  const Placement placement(all, late.nodes);
  Shape shape;
  shape.p = placement.size();
  shape.nodes = placement.node_count();
  shape.fewest_local = placement.fewest_local();
  shape.most_local = placement.most_local();
  shape.area_bytes = placement.most_local() > 1 ? 1 << 20 : 0;
  shape.bytes = late.bytes;
  return find_algorithm(late.collective, late.algorithm)->why_not(shape) == nullptr;
}

// The time of what is left when the late rank comes: its own blocks, in both directions, and a few start-ups.
Time time_of_own_blocks(const Late& late) {
  return 40'000 + static_cast<Time>(4 * late.nodes.size()) * (1'000 + late.bytes / 5);
}

class ArrivalAware : public ::testing::TestWithParam<std::tuple<ibcoll_collective_t, const char*>> {};

TEST_P(ArrivalAware, TheOthersAreDoneBeforeTheLateRankComes) {
  const auto [collective, algorithm] = GetParam();
  for (const int p : {2, 3, 4, 7, 11, 16, 23, 40})
    for (int kind = 0; kind < 3; ++kind)
      for (const ibcoll_scheme_t scheme : {IBCOLL_SCHEME_COPY, IBCOLL_SCHEME_ZERO_COPY})
        for (const uint64_t bytes : {uint64_t{8}, uint64_t{3000}, uint64_t{20'000}}) {
          // Through the node window longer blocks take rounds, which all nodes do together.
          const Late late{collective, algorithm, scheme, bytes, node_layout(p, kind), p / 2, kLate};
          if ((late.shm() || p > 16) && bytes > (p > 16 ? 100 : 3000)) continue;
          if (!applies_to(late)) continue;
          const Outcome outcome = run_late(late);
          ASSERT_TRUE(outcome.others_were_done)
              << "p " << p << " layout " << kind << " bytes " << bytes << ":" << outcome.missing;
          ASSERT_LT(outcome.after_arrival, time_of_own_blocks(late))
              << "p " << p << " layout " << kind << " bytes " << bytes;
        }
}

INSTANTIATE_TEST_SUITE_P(Paper, ArrivalAware,
                         ::testing::Combine(::testing::Values(IBCOLL_ALLTOALL, IBCOLL_ALLGATHER),
                                            ::testing::Values("pap_direct", "pap_shm_direct", "pap_shm_lanes")));
INSTANTIATE_TEST_SUITE_P(WithSizes, ArrivalAware,
                         ::testing::Combine(::testing::Values(IBCOLL_ALLTOALLV, IBCOLL_ALLGATHERV),
                                            ::testing::Values("pap_direct", "pap_shm_direct", "pap_shm_lanes")));

// Any rank late, on random layouts: uneven nodes, nodes of one rank, ranks of a node that are no neighbours.
TEST(NodeLanes, NoRankWaitsForItsNode) {
  int runs = 0;
  for (const int p : sweep() ? std::vector{3, 5, 8, 13, 16, 24} : std::vector{3, 5, 8, 13})
    for (int layout = 1; layout < 5; ++layout)
      for (int rank = 0; rank < p; rank += 1 + p / (sweep() ? 6 : 3))
        for (const ibcoll_collective_t collective : {IBCOLL_ALLTOALL, IBCOLL_ALLTOALLV, IBCOLL_ALLGATHER})
          for (const ibcoll_scheme_t scheme : {IBCOLL_SCHEME_COPY, IBCOLL_SCHEME_ZERO_COPY}) {
            const uint64_t bytes = p <= 8 ? 2'000 : 100;
            const Late late{collective, "pap_shm_lanes", scheme, bytes, node_layout(p, layout), rank, kLate};
            if (!applies_to(late)) continue;
            const Outcome outcome = run_late(late);
            ASSERT_TRUE(outcome.others_were_done)
                << "p " << p << " layout " << layout << " late " << rank << ":" << outcome.missing;
            ASSERT_LT(outcome.after_arrival, time_of_own_blocks(late))
                << "p " << p << " layout " << layout << " late " << rank;
            ++runs;
          }
  EXPECT_GT(runs, sweep() ? 250 : 100);
}

// Blocks of an alltoallv that no row has room for wait for no rank but their own two.
TEST(NodeLanes, LongBlocksOfAlltoallvPassTheLateRank) {
  for (const int layout : {1, 2, 3})
    for (const int rank : {0, 5, 10}) {
      const Late late{
          IBCOLL_ALLTOALLV, "pap_shm_lanes", IBCOLL_SCHEME_ZERO_COPY, 100'000, node_layout(12, layout), rank, kLate};
      const Outcome outcome = run_late(late);
      EXPECT_TRUE(outcome.others_were_done) << "layout " << layout << " late " << rank << ":" << outcome.missing;
      EXPECT_LT(outcome.after_arrival, time_of_own_blocks(late)) << "layout " << layout << " late " << rank;
    }
}

// Where leaders send for all, their node's blocks wait for the late rank, whether it leads or not.
TEST(NodeLanes, WithLeadersTheNodeWaits) {
  for (const ibcoll_collective_t collective : {IBCOLL_ALLTOALL, IBCOLL_ALLGATHER})
    for (const int rank : {4, 6}) {
      Late late{collective, "pap_shm_direct", IBCOLL_SCHEME_ZERO_COPY, 500, node_layout(16, 1), rank, kLate};
      late.no_wait_for_the_node = true;
      EXPECT_FALSE(run_late(late).others_were_done) << rank;
    }
}

// N - 1 messages per rank, and nothing else; in alltoallv sizes before them.
TEST(NodeLanes, EachRankSendsOnceToEachOtherNode) {
  for (const ibcoll_collective_t collective : {IBCOLL_ALLTOALL, IBCOLL_ALLTOALLV, IBCOLL_ALLGATHER}) {
    const uint64_t messages = 16 * 3 * (collective == IBCOLL_ALLTOALLV ? 2 : 1);
    Late late{collective, "pap_shm_lanes", IBCOLL_SCHEME_ZERO_COPY, 500, node_layout(16, 1), 5, 100'000};
    const sim::Counters announced = run_late(late).counters;
    EXPECT_EQ(announced.messages, messages);
    EXPECT_EQ(announced.puts, messages);
    late.scheme = IBCOLL_SCHEME_COPY;
    const sim::Counters copied = run_late(late).counters;
    EXPECT_EQ(copied.messages, messages);
    EXPECT_EQ(copied.puts, 0u);
  }
}

// What was sent ahead whole is received whole: the late rank needs no address and no last byte of any block.
class SentAhead : public ::testing::TestWithParam<std::tuple<ibcoll_collective_t, const char*>> {};

TEST_P(SentAhead, NothingIsLeftToSendToTheLateRank) {
  const auto [collective, algorithm] = GetParam();
  const Seeds seeds(1, 2);
  for (int p = 2; p <= 40; p += sweep() || p < 9 ? 1 : 4)
    for (int layout = 0; layout < 3; ++layout)
      for (const ibcoll_scheme_t scheme : {IBCOLL_SCHEME_AUTO, IBCOLL_SCHEME_COPY})
        for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
          // Up to the share of each sender, which is 2 MB of all. Odd p have eager blocks.
          const uint64_t share = (2 << 20) / static_cast<uint64_t>(p - 1);
          const uint64_t bytes = p % 2 == 0 ? std::min<uint64_t>(share, 50'000) : 3'000;
          Late late{collective, algorithm, scheme, bytes, node_layout(p, layout), static_cast<int>(seed + 5) % p,
                    kLate};
          late.seed = seed;
          const Outcome outcome = run_late(late);
          ASSERT_EQ(outcome.sent_to_late_rank, 0u)
              << "p " << p << " layout " << layout << " bytes " << bytes << "; " << replay_command(seed);
          ASSERT_TRUE(outcome.others_were_done) << outcome.missing;
        }
}

INSTANTIATE_TEST_SUITE_P(Direct, SentAhead,
                         ::testing::Combine(::testing::Values(IBCOLL_ALLTOALL, IBCOLL_ALLTOALLV, IBCOLL_ALLGATHER,
                                                              IBCOLL_ALLGATHERV),
                                            ::testing::Values("pap_direct")));
INSTANTIATE_TEST_SUITE_P(ToTheRoot, SentAhead,
                         ::testing::Combine(::testing::Values(IBCOLL_GATHER, IBCOLL_GATHERV),
                                            ::testing::Values("linear")));

// Beyond the share, and with a forced zero-copy scheme, the rest waits for the advertisement.
TEST(Spill, WhatTheShareHasNoRoomForComesAfterTheArrival) {
  for (const ibcoll_collective_t collective : {IBCOLL_ALLTOALL, IBCOLL_ALLGATHER, IBCOLL_GATHER})
    for (const int p : {2, 5, 12}) {
      const uint64_t share = (2 << 20) / static_cast<uint64_t>(p - 1);
      Late late{collective,
                gathers(collective) ? "linear" : "pap_direct",
                IBCOLL_SCHEME_AUTO,
                share + 1,
                node_layout(p, 0),
                p / 2,
                kLate};
      EXPECT_EQ(run_late(late).sent_to_late_rank, static_cast<uint64_t>(p - 1)) << p;
      late.scheme = IBCOLL_SCHEME_ZERO_COPY;
      late.bytes = 10'000;
      EXPECT_EQ(run_late(late).sent_to_late_rank, static_cast<uint64_t>(p - 1)) << p;
    }
}

// Long blocks for the late rank travel to its landing memory while it is away.
TEST(Spill, BlocksForTheLateRankTravelWhileItIsAway) {
  for (const ibcoll_collective_t collective : {IBCOLL_ALLTOALL, IBCOLL_ALLGATHER})
    for (const int p : {4, 9}) {
      Late late{collective, "pap_direct", IBCOLL_SCHEME_AUTO, 100'000, node_layout(p, 0), p / 2, kLate};
      const Outcome spilled = run_late(late);
      EXPECT_TRUE(spilled.others_were_done) << p;
      late.scheme = IBCOLL_SCHEME_ZERO_COPY;
      const Outcome waited = run_late(late);
      // Its own blocks go out in both cases, while those for it come in: with a link of its own it gains nothing, and
      // loses no more than a start-up for each peer.
      EXPECT_LT(spilled.late_rank_done, waited.late_rank_done + static_cast<Time>(p) * 1'000) << p;
      const uint64_t slots = static_cast<uint64_t>(p - 1) * (late.bytes / 4096);
      EXPECT_GE(spilled.counters.messages, waited.counters.messages + slots) << p;
    }
}

// The root does not wait for the late rank before it serves those after it.
TEST(Scatter, OthersHaveTheirBlocksBeforeTheLateRankComes) {
  for (const int p : {3, 8, 13}) {
    const Late late{IBCOLL_SCATTER, "linear", IBCOLL_SCHEME_ZERO_COPY, 3000, node_layout(p, 0), p / 2, kLate};
    const Outcome outcome = run_late(late);
    EXPECT_TRUE(outcome.others_were_done) << p << ":" << outcome.missing;
  }
}

TEST(Barrier, NobodyLeavesBeforeTheLateRankHasCome) {
  for (const Algorithm* const a : algorithms()) {
    if (a->collective != IBCOLL_BARRIER) continue;
    int calls = 0;
    for (const int p : {2, 3, 5, 8, 13})
      for (int rank = 0; rank < 2 * p; ++rank) {
        Late late{IBCOLL_BARRIER, a->name, IBCOLL_SCHEME_AUTO, 0, node_layout(p, rank / p), rank % p, kLate};
        late.parameter = a->parameter.unit == Parameter::Unit::kNone ? 0 : 2;  // a tree of several levels
        if (!applies_to(late)) continue;
        EXPECT_FALSE(run_late(late).left_before) << a->name << ", " << p << ", rank " << rank;
        ++calls;
      }
    EXPECT_GT(calls, 0) << a->name;
  }
}

// The plain form, for comparison: it waits for the late rank before it serves those after it.
TEST(Direct, WaitsForTheLateRank) {
  for (const ibcoll_collective_t collective : {IBCOLL_ALLTOALL, IBCOLL_ALLGATHER})
    for (const int p : {4, 8, 16}) {
      const Late late{collective, "direct", IBCOLL_SCHEME_ZERO_COPY, 3000, node_layout(p, 0), p / 2, kLate};
      EXPECT_FALSE(run_late(late).others_were_done) << p;
    }
}

// p (p - 1) messages and nothing else: advertisements and puts, or the data alone.
TEST(ArrivalNotice, IsTheAdvertisementOrTheDataItself) {
  for (const ibcoll_collective_t collective : {IBCOLL_ALLTOALL, IBCOLL_ALLGATHER})
    for (const char* const algorithm : {"direct", "pap_direct"})
      for (const int p : {2, 5, 12}) {
        const auto pairs = static_cast<uint64_t>(p * (p - 1));
        const Late zero_copy{collective, algorithm, IBCOLL_SCHEME_ZERO_COPY, 3000, node_layout(p, 0), 0, 100'000};
        const sim::Counters announced = run_late(zero_copy).counters;
        EXPECT_EQ(announced.messages, pairs) << algorithm << " p " << p;
        EXPECT_EQ(announced.puts, pairs) << algorithm << " p " << p;
        const Late copy{collective, algorithm, IBCOLL_SCHEME_COPY, 1000, node_layout(p, 0), 0, 100'000};
        const sim::Counters copied = run_late(copy).counters;
        EXPECT_EQ(copied.messages, pairs) << algorithm << " p " << p;
        EXPECT_EQ(copied.puts, 0u) << algorithm << " p " << p;
      }
}

// While one rank is late, the others have reduce-scattered among themselves; each has one operand left to add.
TEST(Allreduce, OthersHaveCombinedBeforeTheLateRankComes) {
  for (const int p : {4, 8, 13}) {
    Late late{IBCOLL_ALLREDUCE, "pap_direct", IBCOLL_SCHEME_ZERO_COPY, 400'000, node_layout(p, 0), p / 2, kLate};
    const Outcome pap = run_late(late);
    EXPECT_EQ(pap.at_arrival.puts, static_cast<uint64_t>((p - 1) * (p - 2))) << p;
    // Each has asked all for an operand, and those whose operand it has added for the result.
    EXPECT_EQ(pap.at_arrival.messages, static_cast<uint64_t>((p - 1) * (p - 1 + p - 2))) << p;
    late.algorithm = "ring";
    const Outcome ring = run_late(late);
    EXPECT_LT(ring.at_arrival.puts, static_cast<uint64_t>((p - 1) * (p - 2))) << p;
    EXPECT_LT(pap.after_arrival, ring.after_arrival) << p;
  }
}

// Longer than what is copied at a time. A rank that is alone has no moment in which it waits.
TEST(OwnBlocks, AreThereHoweverLongTheyAre) {
  for (const Algorithm* const algorithm : algorithms())
    for (const int p : {1, 2, 5}) {
      if (kCatalog[algorithm->collective].reduces()) continue;
      const Late late{algorithm->collective, algorithm->name, IBCOLL_SCHEME_AUTO, 100'000, node_layout(p, 0), 0, 1};
      if (applies_to(late)) run_late(late);
    }
}

// The others run ahead of the late root as far as they have slots for blocks that it has not taken.
TEST(CirculantReduce, BlocksThatTheLateRootHasNotTakenStay) {
  for (const int p : {4, 5}) {
    Late late{IBCOLL_REDUCE, "circulant", IBCOLL_SCHEME_ZERO_COPY, 4'000'000, node_layout(p, 0), 0, kLate};
    late.parameter = 1;  // blocks as long as there is memory for: more of them than slots
    run_late(late);
  }
}

}  // namespace
}  // namespace ibcoll
