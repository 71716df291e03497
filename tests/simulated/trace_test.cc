// SPDX-License-Identifier: BSD-3-Clause
// A trace says when each peer was served: in virtual time, where that is known.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <numeric>

#include "runtime/collectives/framework/registry.h"
#include "tests/simulated/replay.h"
#include "tests/simulated/scenario.h"

namespace ibcoll {
namespace {

struct Traced {
  std::vector<TraceBuffer> rings;
  std::vector<Time> arrivals;  // by rank
};

// One alltoall of ranks which come at these times; where no nodes are given, each is on its own.
Traced run_traced(const char* algorithm, ibcoll_scheme_t scheme, uint64_t bytes, const std::vector<Time>& delays,
                  std::vector<int> node_of = {}) {
  const int p = static_cast<int>(delays.size());
  SimJobParams params;
  params.network.ranks = p;
  std::vector<int> all(delays.size());
  std::iota(all.begin(), all.end(), 0);
  params.network.node_of = node_of.empty() ? all : std::move(node_of);
  params.network.between_nodes.jitter_ns = 0;
  params.network.random = false;  // a put reports when its source is reusable
  SimJob job(params);
  const int team = job.make_team(all);
  CallParams wanted;
  wanted.collective = IBCOLL_ALLTOALL;
  wanted.p = p;
  wanted.bytes = bytes;
  wanted.scheme = scheme;
  CollectiveCase call(wanted, 3);
  Traced traced;
  traced.rings.assign(delays.size(), TraceBuffer(4, 64));
  traced.arrivals.resize(delays.size());
  std::vector<std::unique_ptr<Request>> requests;
  for (int rank = 0; rank < p; ++rank) {
    const auto at = static_cast<size_t>(rank);
    requests.push_back(make_request(job.team(team, rank), call, *find_algorithm(IBCOLL_ALLTOALL, algorithm)));
    requests.back()->trace().enable(traced.rings[at], nullptr, true);
    SimStep step;
    step.request = requests.back().get();
    step.delay_ns = delays[at];
    step.before_start = [&, rank, at] {
      call.at(rank).fill(0);
      traced.arrivals[at] = job.network().now();
    };
    step.completed = [&, rank](const Status& status) {
      EXPECT_TRUE(status.ok()) << status.text();
      EXPECT_EQ(call.at(rank).check(0), "");
    };
    job.add_step(rank, std::move(step));
  }
  const Status status = job.run();
  EXPECT_TRUE(status.ok()) << status.text();
  return traced;
}

std::map<int, TracedPeer> peers_of(const TraceBuffer& buffer) {
  std::map<int, TracedPeer> peers;
  for (uint64_t i = 0; i < buffer.peers_kept(); ++i) peers[buffer.peer(i).job_rank] = buffer.peer(i);
  return peers;
}

constexpr Time kApart = 1'000'000;  // far longer than the call takes

// Ranks come in the order 2, 0, 3, 1; the early ones are served while the late ones are away.
TEST(Trace, PeersAreServedInTheOrderOfTheirArrival) {
  for (const ibcoll_scheme_t scheme : {IBCOLL_SCHEME_ZERO_COPY, IBCOLL_SCHEME_COPY}) {
    const Traced traced = run_traced("pap_direct", scheme, 20'000, {kApart, 3 * kApart, 0, 2 * kApart});
    for (size_t rank = 0; rank < 4; ++rank) {
      const std::map<int, TracedPeer> peers = peers_of(traced.rings[rank]);
      ASSERT_EQ(peers.size(), 3U);
      for (const auto& [peer, served] : peers) {
        // Copied data leave for a rank that is away, as it has landing memory for all of them.
        const Time peer_at = traced.arrivals[static_cast<size_t>(peer)], at = traced.arrivals[rank];
        const auto together = static_cast<int64_t>(std::max(peer_at, at) - at);
        const int64_t sends_from = scheme == IBCOLL_SCHEME_ZERO_COPY ? together : 0;
        EXPECT_GE(served.begun_ns, sends_from) << rank << " " << peer;
        EXPECT_LT(served.sent_ns, sends_from + static_cast<int64_t>(kApart) / 2) << rank << " " << peer;
        EXPECT_GE(served.landed_ns, together) << rank << " " << peer;
        EXPECT_LT(served.landed_ns, together + static_cast<int64_t>(kApart) / 2) << rank << " " << peer;
        EXPECT_LE(served.begun_ns, served.sent_ns);
      }
    }
  }
}

// The source of a put is reusable later than the put began, by the time that its bytes take.
TEST(Trace, APutIsCompleteWhenItsSourceIsReusable) {
  const Traced traced = run_traced("pap_direct", IBCOLL_SCHEME_ZERO_COPY, 200'000, {0, 0});
  const std::map<int, TracedPeer> peers = peers_of(traced.rings[0]);
  ASSERT_EQ(peers.size(), 1U);
  EXPECT_GE(peers.at(1).sent_ns, peers.at(1).begun_ns + 5'000);
}

// The plain form is blamed for this: rank 0 serves rank 2, which has come, after rank 1, which has not.
TEST(Trace, ShowsThatTheDirectFormWaits) {
  const Traced traced = run_traced("direct", IBCOLL_SCHEME_ZERO_COPY, 20'000, {0, kApart, 0});
  const std::map<int, TracedPeer> peers = peers_of(traced.rings[0]);
  ASSERT_EQ(peers.size(), 2U);
  EXPECT_GE(peers.at(1).begun_ns, static_cast<int64_t>(kApart));
  EXPECT_GE(peers.at(2).begun_ns, peers.at(1).begun_ns);
}

constexpr Time kSoon = 1'000;  // at 0 nothing is recorded

// The times at which rank `rank` has published and waited in the node window, by the time of the job.
struct InNode {
  int64_t published, from, until;
  int who;
};

InNode in_node(const Traced& traced, size_t rank) {
  const TracedCall& call = traced.rings[rank][0];
  return {call.arrival_ns + call.published_ns, call.arrival_ns + call.waited_from_ns,
          call.arrival_ns + call.waited_until_ns, call.waited_for};
}

// Ranks of one node come in the order 0, 1, 3, 2: each waits for the last one, whatever the order in which it looks.
TEST(Trace, InANodeTheLongestWaitEndsWithTheLastRank) {
  for (const char* const algorithm : {"shm", "single_copy"}) {
    const Traced traced =
        run_traced(algorithm, IBCOLL_SCHEME_AUTO, 64, {kSoon, kApart, 3 * kApart, 2 * kApart}, {0, 0, 0, 0});
    const auto last = static_cast<int64_t>(traced.arrivals[2]), slack = static_cast<int64_t>(kApart) / 10;
    for (size_t rank = 0; rank < 4; ++rank) {
      const auto arrival = static_cast<int64_t>(traced.arrivals[rank]);
      const InNode node = in_node(traced, rank);
      EXPECT_GE(node.published, arrival) << rank;
      EXPECT_LT(node.published, arrival + slack) << rank;
      if (rank == 2) continue;
      EXPECT_EQ(node.who, 2) << algorithm << " rank " << rank;
      EXPECT_GE(node.from, arrival) << rank;
      EXPECT_LT(node.from, arrival + slack) << rank;
      EXPECT_GE(node.until, last) << rank;
      EXPECT_LT(node.until, last + slack) << rank;
    }
  }
}

// Two nodes of two ranks, of which rank 3 is late: its leader waits for it, and the other node for its own leader.
TEST(Trace, InNodePhasesTheLeaderIsWaitedFor) {
  const std::vector<Time> delays{kSoon, kSoon, kSoon, kApart};
  const Traced traced = run_traced("pap_shm_direct", IBCOLL_SCHEME_AUTO, 64, delays, {0, 0, 1, 1});
  EXPECT_EQ(in_node(traced, 2).who, 3);
  EXPECT_EQ(in_node(traced, 1).who, 0);
  for (const size_t rank : {size_t{1}, size_t{2}})
    EXPECT_GE(in_node(traced, rank).until, static_cast<int64_t>(traced.arrivals[3])) << rank;
}

TEST(Trace, MessagesAloneLeaveTheWindowOut) {
  const Traced traced = run_traced("pap_direct", IBCOLL_SCHEME_AUTO, 64, {kSoon, kApart}, {0, 0});
  EXPECT_EQ(traced.rings[0][0].published_ns, TracedCall::kNever);
  EXPECT_EQ(traced.rings[0][0].waited_for, -1);
}

}  // namespace
}  // namespace ibcoll
