// SPDX-License-Identifier: BSD-3-Clause
// Broadcasts that pass a late rank by: whichever it is, all others have the message before it comes, and all but the
// root have left.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/collectives/framework/registry.h"
#include "tests/simulated/replay.h"
#include "tests/simulated/scenario.h"

namespace ibcoll::late_bcast {
namespace {

// The bytes of the message that each rank puts, and those of them that go to another node.
class Puts final : public sim::Observer {
 public:
  explicit Puts(const std::vector<int>& node_of) : node_of_(node_of), by_rank_(node_of.size(), 0) {}
  void posts(sim::Message& message) override {
    if (message.kind != sim::Message::Kind::kPut) return;
    by_rank_[static_cast<size_t>(message.from)] += message.bytes;
    if (node_of(message.from) != node_of(message.to)) between_nodes_ += message.bytes;
  }

  uint64_t of(int rank) const { return by_rank_[static_cast<size_t>(rank)]; }
  uint64_t between_nodes() const { return between_nodes_; }

 private:
  int node_of(int rank) const { return node_of_[static_cast<size_t>(rank)]; }
  const std::vector<int>& node_of_;
  std::vector<uint64_t> by_rank_;
  uint64_t between_nodes_ = 0;
};

struct Call {
  const char* algorithm;
  std::vector<int> node_of;
  std::vector<Time> arrivals;
  int root = 0;
  uint64_t bytes = 0;
  uint64_t parameter = 0;
  ibcoll_scheme_t scheme = IBCOLL_SCHEME_AUTO;
  uint64_t seed = 1;
  bool jitter = true;
  Time dies_at = 0;  // the last one to come, where that is not 0

  int p() const { return static_cast<int>(node_of.size()); }
};

struct Outcome {
  int last = 0;                 // the rank that came last
  std::vector<int> without;     // ranks that had not got the message when it came
  int left = 0;                 // ranks that had left the call then
  std::vector<Time> completed;  // since the first arrival
  std::vector<int> failed;      // ranks whose call ended with an error, where one dies
  ibcoll_status_t code = IBCOLL_OK;
};

Outcome run(const Call& call, Puts* puts = nullptr) {
  SimJobParams params;
  params.network.ranks = call.p();
  params.network.node_of = call.node_of;
  params.network.seed = call.seed;
  if (!call.jitter) params.network.between_nodes.jitter_ns = params.network.within_node.jitter_ns = 0;
  params.limits.eager_bytes = 512;
  params.lazy = 0;
  SimJob job(params);
  if (puts) job.network().watch(puts);
  const int team = job.make_world();
  CallParams wanted;
  wanted.collective = IBCOLL_BCAST;
  wanted.p = call.p(), wanted.root = call.root, wanted.bytes = call.bytes, wanted.scheme = call.scheme;
  CollectiveCase buffers(wanted, 17);
  Outcome outcome;
  outcome.last = static_cast<int>(std::max_element(call.arrivals.begin(), call.arrivals.end()) - call.arrivals.begin());
  outcome.completed.resize(call.node_of.size());
  int completed = 0;
  std::vector<std::unique_ptr<Request>> requests;
  for (int rank = 0; rank < call.p(); ++rank) buffers.at(rank).fill(0);
  for (int rank = 0; rank < call.p(); ++rank) {
    requests.push_back(
        make_request(job.team(team, rank), buffers, *find_algorithm(IBCOLL_BCAST, call.algorithm), call.parameter));
    SimStep step;
    step.request = requests.back().get();
    step.delay_ns = call.arrivals[static_cast<size_t>(rank)];
    step.before_start = [&, rank] {
      if (rank != outcome.last) return;
      outcome.left = completed;
      for (int other = 0; other < call.p(); ++other)
        if (other != rank && buffers.at(other).check(0) != "") outcome.without.push_back(other);
    };
    step.completed = [&, rank](const Status& status) {
      if (call.dies_at > 0 && !status.ok()) {
        outcome.failed.push_back(rank), outcome.code = status.code();
        return;
      }
      EXPECT_TRUE(status.ok()) << status.text();
      EXPECT_EQ(buffers.at(rank).check(0), "");
      outcome.completed[static_cast<size_t>(rank)] = job.network().now();
      ++completed;
    };
    job.add_step(rank, std::move(step));
  }
  if (call.dies_at > 0) job.network().kill(outcome.last, call.dies_at);
  const Status status = job.run();
  EXPECT_TRUE(status.ok()) << status.text();
  return outcome;
}

constexpr Time kLate = 50'000'000;

// A node for each rank, nodes of neighbours, ranks dealt out to nodes.
std::vector<int> layout(int p, int kind) {
  std::vector<int> nodes;
  for (int rank = 0; rank < p; ++rank) nodes.push_back(kind == 0 ? rank : kind == 1 ? rank / 4 : rank % (1 + p / 4));
  return nodes;
}

class LateBcast : public ::testing::TestWithParam<const char*> {
 protected:
  const Algorithm& algorithm() const { return *find_algorithm(IBCOLL_BCAST, GetParam()); }
  uint64_t short_pieces() const { return algorithm().parameter.least * (algorithm().parameter.most > 0); }
};

TEST_P(LateBcast, DelaysItselfAlone) {
  std::vector<int> all;
  for (int p = 2; p <= 40; ++p)
    if (sweep() || p < 8 || p % 8 == 5) all.push_back(p);
  for (const int p : all)
    for (int root = 0; root < p; root += sweep() && p < 20 ? 1 : 1 + p / 3)
      for (int late = 0; late < p; ++late) {
        if (late == root) continue;
        Call call{GetParam(), layout(p, (late + root) % 3), std::vector<Time>(static_cast<size_t>(p), 0)};
        call.arrivals[static_cast<size_t>(late)] = kLate;
        call.root = root, call.bytes = late % 2 == 0 ? 3000 : 300;
        call.parameter = short_pieces() * (late % 4 == 0 ? 4 : 1);  // which are announced, or not
        call.scheme = late % 3 == 0 ? IBCOLL_SCHEME_ZERO_COPY : late % 3 == 1 ? IBCOLL_SCHEME_COPY : IBCOLL_SCHEME_AUTO;
        call.seed = static_cast<uint64_t>(late + 1);
        const Outcome outcome = run(call);
        ASSERT_TRUE(outcome.without.empty())
            << fmt::format("p {} root {} late {}: {}", p, root, late, fmt::join(outcome.without, " "));
        ASSERT_GE(outcome.left, p - 2) << fmt::format("p {} root {} late {}", p, root, late);
      }
}

// Ranks that come one after the other, each long after the one before.
TEST_P(LateBcast, EachRankHasTheMessageSoonAfterItCame) {
  for (const int p : {3, 6, 9}) {
    Call call{GetParam(), layout(p, p % 3), {}};
    for (int rank = 0; rank < p; ++rank) call.arrivals.push_back(static_cast<Time>((rank + p / 2) % p) * 1'000'000);
    call.root = (p + 1) / 2, call.bytes = 20'000, call.parameter = short_pieces() * 16;
    const Outcome outcome = run(call);
    for (int rank = 0; rank < p; ++rank) {
      if (rank == call.root) continue;
      const Time came =
          std::max(call.arrivals[static_cast<size_t>(rank)], call.arrivals[static_cast<size_t>(call.root)]);
      EXPECT_LT(outcome.completed[static_cast<size_t>(rank)], came + 100'000) << "p " << p << " rank " << rank;
    }
  }
}

TEST_P(LateBcast, ARankThatDiesEndsTheCall) {
  const Seeds seeds(20, 200);
  uint64_t failed = 0;
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    ScenarioParams params{seed, &algorithm(), 3 + static_cast<int>(seed % 6)};
    const ScenarioResult healthy = run_scenario(params);
    ASSERT_EQ(healthy.failure, "") << replay_command(seed);
    params.kill = static_cast<int>(seed) % params.p;
    params.kill_at = healthy.time * (seed % 5) / 5;
    const ScenarioResult result = run_scenario(params);
    ASSERT_EQ(result.failure, "") << replay_command(seed);
    failed += result.failed;
  }
  EXPECT_GT(failed, 0u);
}

// It dies before it comes: the others have the message, and the root, which waits for it, learns why it will not come.
TEST_P(LateBcast, ARankThatDiesLateCostsTheOthersNothing) {
  for (const int p : {2, 5, 16})
    for (int late = 0; late < p; ++late) {
      Call call{GetParam(), layout(p, late % 3), std::vector<Time>(static_cast<size_t>(p), 0)};
      call.root = (late + 1 + late % (p - 1)) % p;
      call.arrivals[static_cast<size_t>(late)] = 2 * kLate, call.dies_at = kLate;
      call.bytes = late % 2 == 0 ? 3000 : 300, call.parameter = short_pieces(), call.scheme = IBCOLL_SCHEME_ZERO_COPY;
      const Outcome outcome = run(call);
      EXPECT_EQ(outcome.failed, std::vector<int>{call.root}) << fmt::format("p {} late {}", p, late);
      EXPECT_EQ(outcome.code, IBCOLL_ERR_PEER_FAILED);
    }
}

INSTANTIATE_TEST_SUITE_P(PassedBy, LateBcast, ::testing::Values("pap_direct", "pap_chain"));

// A long message in many pieces, with a link of its own for each rank. Its bytes take 100 us. The root looks for
// arrivals when it has sent 0, 2, 4, 8, ... hundredths of them.
Call long_call(int p, std::vector<int> node_of) {
  Call call{"pap_chain", std::move(node_of), std::vector<Time>(static_cast<size_t>(p), 0)};
  call.bytes = 1'000'000, call.parameter = 10'000, call.jitter = false;
  return call;
}

// They come while the root sends, and take the message from the last of those that came before.
TEST(GrowingChain, RanksThatComeSoonTakeTheMessageFromTheRootOnce) {
  for (const int p : {3, 5, 8}) {
    Call call = long_call(p, layout(p, 0));
    for (int rank = 1; rank < p; ++rank) call.arrivals[static_cast<size_t>(rank)] = static_cast<Time>(rank) * 8'000;
    Puts puts(call.node_of);
    const Outcome outcome = run(call, &puts);
    for (int rank = 0; rank + 1 < p; ++rank) EXPECT_EQ(puts.of(rank), call.bytes) << "p " << p << " rank " << rank;
    EXPECT_EQ(puts.of(p - 1), 0u);
    // The bytes, after the root has looked, and a few start-ups for each rank.
    EXPECT_LT(outcome.completed.back(), 2 * call.arrivals.back() + 100'000 + static_cast<Time>(p) * 6'000) << p;
  }
}

// Where the end of the chain would get it later than from the root, the root sends it again.
TEST(GrowingChain, ALongChainDoesNotGrowNearItsEnd) {
  for (const auto& [p, copies] : {std::pair{6, 1}, {40, 2}}) {
    Call call = long_call(p, layout(p, 0));
    call.arrivals[4] = 60'000;
    Puts puts(call.node_of);
    run(call, &puts);
    EXPECT_EQ(puts.of(0), static_cast<uint64_t>(copies) * call.bytes) << p;
    EXPECT_EQ(puts.of(4), 0u) << p;
  }
}

// Chains of all lengths, which grow at any of their pieces, and follow one another.
TEST(GrowingChain, EveryRankHasTheMessageWheneverItComes) {
  const Seeds seeds(60, 2000);
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    sim::Random random(seed);
    const int p = 2 + static_cast<int>(random.below(39));
    Call call{"pap_chain", layout(p, static_cast<int>(random.below(3))), {}};
    const uint64_t spread = 1 + random.below(100'000);
    for (int rank = 0; rank < p; ++rank) call.arrivals.push_back(random.below(spread));
    call.root = static_cast<int>(random.below(static_cast<uint64_t>(p)));
    call.bytes = 1 + random.below(20'000), call.parameter = 256 + random.below(2'000), call.seed = seed;
    run(call);
    ASSERT_FALSE(HasFailure()) << "p " << p << "; " << replay_command(seed);
  }
}

// Ranks that come together, before the root or with it, or one by one while it sends, those of the nodes in turns: each
// node takes the message once.
TEST(GrowingChain, CrossesEachLinkBetweenNodesOnce) {
  for (const int p : {16, 48})
    for (const Time root_comes : {0, 50'000})
      for (const Time spread : {0, 10'000, 20'000})
        for (const int kind : {1, 2}) {
          Call call = long_call(p, layout(p, kind));
          sim::Random random(static_cast<uint64_t>(p) + spread);
          for (int rank = 1; rank < p; ++rank) call.arrivals[static_cast<size_t>(rank)] = random.below(1 + spread);
          call.arrivals[0] = root_comes;
          Puts puts(call.node_of);
          run(call, &puts);
          const auto nodes = static_cast<uint64_t>(kind == 1 ? p / 4 : 1 + p / 4);
          EXPECT_EQ(puts.between_nodes(), (nodes - 1) * call.bytes)
              << fmt::format("p {} layout {} root at {} others within {}", p, kind, root_comes, spread);
        }
}

// A piece passes through the first rank of each node, and then through the ranks of the last one.
TEST(GrowingChain, IsAsLongAsThereAreNodes) {
  for (const int kind : {1, 2}) {
    Call call = long_call(48, layout(48, kind));
    call.bytes = call.parameter = 10'000;
    const Outcome outcome = run(call);
    EXPECT_LT(*std::max_element(outcome.completed.begin(), outcome.completed.end()), 35'000u) << kind;
  }
}

// At more nodes than a header has room for.
TEST(GrowingChain, WhatAHeaderHasNoRoomForJoinsByTheNext) {
  const int p = 80;
  Call call = long_call(p, layout(p, 2));
  for (int rank = 21; rank < p; ++rank) call.arrivals[static_cast<size_t>(rank)] = 5'000;  // a second one of each node
  call.bytes *= 2, call.parameter = 5'000;
  Puts puts(call.node_of);
  run(call, &puts);
  EXPECT_EQ(puts.between_nodes(), 20 * call.bytes);
}

}  // namespace
}  // namespace ibcoll::late_bcast
