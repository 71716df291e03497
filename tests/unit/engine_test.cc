// SPDX-License-Identifier: BSD-3-Clause
// Engines of one process on a wire that the test holds in its hands: it can be full, late, or lose a rank.
#include "runtime/engine.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "runtime/arguments.h"
#include "runtime/collectives/registry.h"
#include "runtime/request.h"
#include "runtime/team.h"

namespace ibcoll {
namespace {

struct Letter {
  int from;
  Note note;
  std::vector<std::byte> payload;
  bool failure = false;
};

// What all engines share: the time, and what is under way to each.
struct Wire {
  explicit Wire(int ranks) : boxes(static_cast<size_t>(ranks)), dead(static_cast<size_t>(ranks), false) {}
  Time now = 1'000'000;
  bool full = false;
  std::vector<std::deque<Letter>> boxes;
  std::vector<bool> dead;
  std::vector<uint16_t> kinds;  // of all notes, in the order of sending
};

class WireTransport : public Transport {
 public:
  WireTransport(Wire& wire, int rank) : wire_(wire), rank_(rank) {}
  const char* name() const override { return "wire"; }
  size_t slot_bytes() const override { return 4096; }
  bool send(int peer, const Note& note, std::span<const std::byte> payload) override {
    if (wire_.full || wire_.dead[static_cast<size_t>(peer)]) return false;
    wire_.kinds.push_back(note.kind);
    wire_.boxes[static_cast<size_t>(peer)].push_back({rank_, note, {payload.begin(), payload.end()}});
    return true;
  }
  RemoteRegion expose(int, std::span<std::byte>) override { return {}; }
  void conceal(int, const RemoteRegion&) override {}
  PutResult put(int, const RemoteRegion&, std::span<const std::byte>, const Note&, uint64_t) override {
    return PutResult::kBusy;
  }
  size_t poll(std::span<Event> events) override {
    std::deque<Letter>& box = wire_.boxes[static_cast<size_t>(rank_)];
    read_.clear();
    while (read_.size() < events.size() && !box.empty()) {
      read_.push_back(std::move(box.front()));
      box.pop_front();
    }
    for (size_t i = 0; i < read_.size(); ++i)
      events[i] = {read_[i].failure ? Event::Kind::kPeerFailed : Event::Kind::kMessage, read_[i].from, read_[i].note,
                   read_[i].payload, 0};
    return read_.size();
  }
  void check_peers() override { ++checks; }
  Time now() const override { return wire_.now; }
  LinkModel model() const override { return {}; }
  nlohmann::json describe() const override { return {}; }

  int checks = 0;

 private:
  Wire& wire_;
  int rank_;
  std::deque<Letter> read_;
};

class EngineTest : public testing::Test {
 protected:
  static constexpr int kRanks = 3;

  void SetUp() override {
    for (int r = 0; r < kRanks; ++r) {
      transports_.push_back(std::make_unique<WireTransport>(wire_, r));
      std::vector<Transport*> route(kRanks, transports_.back().get());
      route[static_cast<size_t>(r)] = nullptr;
      engines_.push_back(std::make_unique<Engine>(r, route, limits_));
      teams_.push_back(make_team(r, 1));
    }
  }
  std::unique_ptr<Team> make_team(int rank, uint64_t epoch) {
    Placement placement;
    for (int i = 0; i < kRanks; ++i) {
      placement.jobs.push_back(i);
      placement.nodes.push_back(i);
    }
    placement.node_count = kRanks;
    return std::make_unique<Team>(*engines_[static_cast<size_t>(rank)], epoch, placement, rank, nullptr);
  }
  // An allgather (ring) of `bytes` bytes per rank. Its data are the rank and the round.
  struct Call {
    std::vector<uint8_t> send, recv;
    std::unique_ptr<Request> request;
    bool right(uint8_t round) const {
      for (size_t i = 0; i < recv.size(); ++i)
        if (recv[i] != 10 * (i / send.size()) + round) return false;
      return true;
    }
  };
  std::unique_ptr<Call> make_call(Team& team, size_t bytes, const char* algorithm = "ring", uint8_t round = 1) {
    auto call = std::make_unique<Call>();
    call->send.assign(bytes, static_cast<uint8_t>(10 * team.rank() + round));
    call->recv.assign(bytes * kRanks, 0xFF);
    Args args;
    args.collective = IBCOLL_ALLGATHER;
    args.send.base = reinterpret_cast<std::byte*>(call->send.data());
    args.recv = {reinterpret_cast<std::byte*>(call->recv.data()), bytes, nullptr, nullptr};
    const uint32_t signature = call_signature(args, algorithm, IBCOLL_SCHEME_AUTO, kRanks);
    call->request = std::make_unique<Request>(team, args, *find_algorithm(IBCOLL_ALLGATHER, algorithm),
                                              IBCOLL_SCHEME_AUTO, signature);
    return call;
  }
  Team& team(int rank) { return *teams_[static_cast<size_t>(rank)]; }
  void progress(int rounds = 50) {
    for (int i = 0; i < rounds; ++i)
      for (auto& engine : engines_) engine->progress();
  }
  // Rounds with time going by, as a rank that waits lets it.
  void wait_seconds(int seconds) {
    for (int i = 0; i < 4 * seconds; ++i) {
      wire_.now += 250'000'000;
      for (auto& engine : engines_) engine->check();
      progress();
    }
  }
  void lose(int rank) {
    wire_.dead[static_cast<size_t>(rank)] = true;
    for (int r = 0; r < kRanks; ++r)
      if (r != rank) wire_.boxes[static_cast<size_t>(r)].push_back({rank, {}, text("it fell"), true});
  }
  static std::vector<std::byte> text(const char* words) {
    const auto bytes = std::as_bytes(std::span(words, std::strlen(words)));
    return {bytes.begin(), bytes.end()};
  }

  Wire wire_{kRanks};
  EngineLimits limits_;
  std::vector<std::unique_ptr<WireTransport>> transports_;
  std::vector<std::unique_ptr<Engine>> engines_;
  std::vector<std::unique_ptr<Team>> teams_;
};

TEST_F(EngineTest, CompletesWhatIsStartedInAnyOrderOfRanks) {
  for (const size_t bytes : {size_t{5}, size_t{8192}, size_t{100'000}}) {
    std::vector<std::unique_ptr<Call>> calls;
    for (const int rank : {2, 0, 1}) {
      calls.push_back(make_call(team(rank), bytes));
      EXPECT_TRUE(calls.back()->request->start().ok());
      progress(3);
    }
    progress(200);
    for (const auto& call : calls) {
      EXPECT_FALSE(call->request->in_flight()) << bytes;
      EXPECT_TRUE(call->right(1)) << bytes;
    }
  }
}

TEST_F(EngineTest, AFullWireIsTriedAgain) {
  std::vector<std::unique_ptr<Call>> calls;
  wire_.full = true;
  for (int rank = 0; rank < kRanks; ++rank) {
    calls.push_back(make_call(team(rank), 20'000));
    EXPECT_TRUE(calls.back()->request->start().ok());
  }
  progress();
  EXPECT_TRUE(wire_.kinds.empty());
  for (int i = 0; i < 2000; ++i) {  // full two times out of three
    wire_.full = i % 3 != 0;
    progress(1);
  }
  for (const auto& call : calls) {
    EXPECT_FALSE(call->request->in_flight());
    EXPECT_TRUE(call->right(1));
  }
}

// Other ranks may be ahead: with a team that does not exist here yet, and with collectives that were not started here.
TEST_F(EngineTest, WhatComesEarlyIsKept) {
  auto first = make_team(0, 77), second = make_team(1, 77);
  std::vector<std::unique_ptr<Call>> calls;
  for (uint8_t round = 1; round <= 3; ++round)
    for (Team* const t : {first.get(), second.get()}) {
      calls.push_back(make_call(*t, 10, "ring", round));
      EXPECT_TRUE(calls.back()->request->start().ok());
    }
  progress();
  auto third = make_team(2, 77);
  for (uint8_t round = 1; round <= 3; ++round) {
    calls.push_back(make_call(*third, 10, "ring", round));
    EXPECT_TRUE(calls.back()->request->start().ok());
  }
  progress();
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_FALSE(calls[i]->request->in_flight()) << i;
    EXPECT_TRUE(calls[i]->right(static_cast<uint8_t>(i < 6 ? 1 + i / 2 : i - 5))) << i;
  }
  calls.clear();
}

TEST_F(EngineTest, ADeathIsNamedByAllAndEndsTheTeam) {
  std::vector<std::unique_ptr<Call>> calls;
  for (const int rank : {0, 2}) {
    calls.push_back(make_call(team(rank), 20'000));
    EXPECT_TRUE(calls.back()->request->start().ok());
  }
  progress();
  lose(1);
  progress();
  for (const auto& call : calls) {
    EXPECT_FALSE(call->request->in_flight());
    EXPECT_EQ(call->request->status().code(), IBCOLL_ERR_PEER_FAILED);
    EXPECT_NE(call->request->status().text().find("rank 1"), std::string::npos) << call->request->status().text();
    EXPECT_NE(call->request->status().text().find("it fell"), std::string::npos) << call->request->status().text();
    EXPECT_EQ(call->request->start().code(), IBCOLL_ERR_PEER_FAILED);
  }
}

TEST_F(EngineTest, ARankThatNobodyWaitsForIsToldOfTheFailure) {
  lose(1);
  wire_.boxes[2].clear();  // rank 2 has not noticed
  auto call = make_call(team(0), 10);
  EXPECT_TRUE(call->request->start().ok());
  progress();
  EXPECT_EQ(team(2).failure().code(), IBCOLL_ERR_PEER_FAILED);
  EXPECT_NE(team(2).failure().text().find("told by rank 0"), std::string::npos) << team(2).failure().text();
}

// What looks like an error of its own may come of a death, which is noticed a little later.
TEST_F(EngineTest, ADeathExplainsWhatWasSuspected) {
  auto call = make_call(team(0), 20'000);
  EXPECT_TRUE(call->request->start().ok());
  team(0).suspect(error(IBCOLL_ERR_SYSTEM, "a read failed"));
  progress();
  EXPECT_TRUE(call->request->in_flight());
  lose(1);
  wire_.boxes[2].clear();  // rank 2 has not noticed
  progress();
  EXPECT_FALSE(call->request->in_flight());
  for (const int rank : {0, 2}) {
    EXPECT_EQ(team(rank).failure().code(), IBCOLL_ERR_PEER_FAILED);
    EXPECT_NE(team(rank).failure().text().find("rank 1"), std::string::npos) << team(rank).failure().text();
  }
}

TEST_F(EngineTest, WhatNothingExplainsIsToldAsItIs) {
  auto call = make_call(team(0), 20'000);
  EXPECT_TRUE(call->request->start().ok());
  team(0).suspect(error(IBCOLL_ERR_SYSTEM, "a read failed"));
  wait_seconds(1);
  EXPECT_EQ(call->request->status().code(), IBCOLL_ERR_SYSTEM);
  EXPECT_EQ(team(2).failure().code(), IBCOLL_ERR_SYSTEM);
}

TEST_F(EngineTest, AWaitThatIsTooLongSaysForWhat) {
  auto call = make_call(team(0), 10);
  EXPECT_TRUE(call->request->start().ok());
  EXPECT_NE(engines_[0]->describe().find("rank 0: allgather (ring) #1 waits for data of rank"), std::string::npos)
      << engines_[0]->describe();
  wait_seconds(590);
  EXPECT_TRUE(call->request->in_flight());
  wait_seconds(20);
  EXPECT_EQ(call->request->status().code(), IBCOLL_ERR_TIMEOUT);
  EXPECT_NE(call->request->status().text().find("IBCOLL_TIMEOUT"), std::string::npos);
  EXPECT_EQ(engines_[0]->describe(), "");
  EXPECT_GT(transports_[0]->checks, 0);
  EXPECT_EQ(team(1).failure().code(), IBCOLL_ERR_TIMEOUT) << "the others are told";
}

TEST_F(EngineTest, DifferentCallsAreFoundByAsking) {
  std::vector<std::unique_ptr<Call>> calls;
  for (int rank = 0; rank < kRanks; ++rank) {
    calls.push_back(make_call(team(rank), rank == 2 ? 100'000 : 50'000));
    EXPECT_TRUE(calls.back()->request->start().ok());
  }
  wait_seconds(3);
  for (const auto& call : calls) EXPECT_EQ(call->request->status().code(), IBCOLL_ERR_MISMATCH);
}

// A rank whose call was complete without the others: it says so when it is asked.
TEST_F(EngineTest, WhoWaitsForARankThatHasEndedLearnsOfIt) {
  auto waits = make_call(team(0), 10), also_waits = make_call(team(2), 10), nothing = make_call(team(1), 0);
  EXPECT_TRUE(nothing->request->start().ok());
  EXPECT_FALSE(nothing->request->in_flight());
  EXPECT_TRUE(waits->request->start().ok());
  EXPECT_TRUE(also_waits->request->start().ok());
  wait_seconds(3);
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(team(rank).failure().code(), IBCOLL_ERR_MISMATCH) << rank;
}

// However many collectives a fast rank starts, a slow one is not flooded.
TEST_F(EngineTest, AFastRankWaitsForTheSlowOne) {
  constexpr int kCalls = 200;
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < kCalls; ++i)
    for (const int rank : {0, 1}) {
      calls.push_back(make_call(team(rank), 100));
      EXPECT_TRUE(calls.back()->request->start().ok());
    }
  for (int i = 0; i < 50; ++i)
    for (const int rank : {0, 1}) engines_[static_cast<size_t>(rank)]->progress();
  EXPECT_LE(wire_.boxes[2].size(), 4 * limits_.collectives_ahead);
  for (int i = 0; i < kCalls; ++i) {
    calls.push_back(make_call(team(2), 100));
    EXPECT_TRUE(calls.back()->request->start().ok());
  }
  progress(500);
  for (const auto& call : calls) {
    ASSERT_FALSE(call->request->in_flight());
    EXPECT_TRUE(call->right(1));
  }
}

TEST_F(EngineTest, NotesOfAFreedTeamAreNothing) {
  std::vector<std::unique_ptr<Team>> others;
  for (int rank = 0; rank < kRanks; ++rank) others.push_back(make_team(rank, 5));
  const Note late{5, 3, 1, 0, 1, static_cast<uint16_t>(NoteKind::kConsumed), 0};
  others[0].reset();
  EXPECT_TRUE(transports_[1]->send(0, late, {}));
  progress();
  EXPECT_TRUE(team(0).failure().ok());
}

TEST_F(EngineTest, AFailedTeamStartsNothing) {
  auto call = make_call(team(0), 10);
  lose(1);
  progress();
  EXPECT_EQ(call->request->start().code(), IBCOLL_ERR_PEER_FAILED);
  EXPECT_FALSE(call->request->in_flight());
}

}  // namespace
}  // namespace ibcoll
