// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/engine.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>

#include "tests/test_main.h"
#include "tests/unit/engine_wire.h"

namespace ibcoll {
namespace {

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

// Where the kernel refuses a put, its data go in messages.
TEST_F(EngineTest, ARefusedPutGoesInFragments) {
  wire_.refuses = true;
  std::vector<std::unique_ptr<Call>> calls;
  for (int rank = 0; rank < kRanks; ++rank) {
    calls.push_back(make_call(team(rank), 20'000));
    EXPECT_TRUE(calls.back()->request->start().ok());
  }
  progress();
  for (const auto& call : calls) {
    EXPECT_FALSE(call->request->in_flight());
    EXPECT_TRUE(call->right(1));
  }
}

// Each of its puts has ended when it returns, so nothing but a look at the wire lets the root learn who comes meanwhile.
TEST_F(EngineTest, ARankThatComesDuringPutsThatEndAtOnceJoinsTheChain) {
  std::vector<std::unique_ptr<Call>> calls;
  for (int rank = 0; rank < kRanks; ++rank) {
    calls.push_back(make_bcast(team(rank), 100'000, 0, "pap_chain", 10'000));
    for (uint8_t& byte : calls.back()->recv) byte = rank == 0 ? 7 : 0;
  }
  const uint64_t all = transports_[0]->most_messages;
  EXPECT_TRUE(calls[0]->request->start().ok());
  EXPECT_TRUE(calls[1]->request->start().ok());
  const auto sent = [&] { return all - transports_[0]->most_messages; };
  for (int i = 0; i < 20 && sent() < 5; ++i) progress(1);
  EXPECT_LT(sent(), 20u);  // a few pieces, of three fragments each
  EXPECT_TRUE(calls[2]->request->start().ok());
  progress();
  EXPECT_LT(sent(), 45u);  // 30 fragments, 4 headers, 2 answers; to both they would be twice as many
  for (const auto& call : calls) {
    EXPECT_FALSE(call->request->in_flight());
    EXPECT_EQ(call->recv, std::vector<uint8_t>(100'000, 7));
  }
}

// Other ranks may be ahead with collectives that were not started here.
TEST_F(EngineTest, WhatComesEarlyIsKept) {
  auto first = make_team(0, 77), second = make_team(1, 77), third = make_team(2, 77);
  std::vector<std::unique_ptr<Call>> calls;
  for (uint8_t round = 1; round <= 3; ++round)
    for (Team* const t : {first.get(), second.get()}) {
      calls.push_back(make_call(*t, 10, "ring", round));
      EXPECT_TRUE(calls.back()->request->start().ok());
    }
  progress();
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

// A call may be complete with some of what came before it, or with none: the rest is too much.
TEST_F(EngineTest, WhatComesEarlyForACallThatDoesNotTakeItIsAMismatch) {
  auto sends = make_call(team(0), 10), also_sends = make_call(team(2), 10), takes_nothing = make_call(team(1), 0);
  EXPECT_TRUE(sends->request->start().ok());
  EXPECT_TRUE(also_sends->request->start().ok());
  progress(3);
  ASSERT_TRUE(team(1).failure().ok());
  EXPECT_TRUE(takes_nothing->request->start().ok());
  EXPECT_EQ(team(1).failure().code(), IBCOLL_ERR_MISMATCH);
  wait_seconds(1);
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(team(rank).failure().code(), IBCOLL_ERR_MISMATCH) << rank;
}

// An error of another call: what each of two ranks calls.
class OtherCall : public EngineTest {
 protected:
  void start(std::unique_ptr<Call> call) {
    (void)call->request->start();  // refused where the rank knows already
    calls_.push_back(std::move(call));
  }
  void start_ring_and_bruck() {
    start(make_call(team(0), 10, "ring"));
    start(make_call(team(1), 12, "bruck"));
  }
  void expect_named(const std::string& of_rank_0, const std::string& of_rank_1) {
    for (const int rank : {0, 1}) {
      const std::string text = team(rank).failure().text();
      EXPECT_NE(text.find("rank 0 calls " + of_rank_0), std::string::npos) << rank << ": " << text;
      EXPECT_NE(text.find("rank 1 calls " + of_rank_1), std::string::npos) << rank << ": " << text;
    }
  }
  void expect_ring_and_bruck(uint32_t op = 1) {
    expect_named(fmt::format("allgather (ring) #{} of 10 bytes per block", op),
                 fmt::format("allgather (bruck) #{} of 12 bytes per block", op));
  }
  std::ptrdiff_t probes() const {
    return std::count(wire_.kinds.begin(), wire_.kinds.end(), static_cast<uint16_t>(NoteKind::kProbe));
  }
  void lose_all() {
    for (auto& box : wire_.boxes) box.clear();
  }
  std::vector<std::unique_ptr<Call>> calls_;
};

// Messages have a digest of the call only: a rank that receives another one asks.
TEST_F(OtherCall, IsNamedByBothRanks) {
  start_ring_and_bruck();
  progress();
  expect_ring_and_bruck();
  EXPECT_LE(probes(), 4);  // of each rank a question and an answer
}

// Two roots send, and are done. What comes for a call that has ended is found with the call.
TEST_F(OtherCall, ThatHasEndedIsNamedByBothRanks) {
  for (const int rank : {0, 1}) {
    start(make_bcast(team(rank), 10, rank));
    progress();
    EXPECT_FALSE(calls_.back()->request->in_flight()) << rank;
  }
  for (const int rank : {0, 1}) start(make_call(team(rank), 10));
  progress();
  expect_named("bcast (binomial) #1 of 10 bytes, root 0", "bcast (binomial) #1 of 10 bytes, root 1");
}

// Calls without data end everywhere, whatever the others call.
TEST_F(OtherCall, IsTheFirstOneOfEight) {
  for (const int between : {0, 6, 7}) {
    calls_.clear();
    for (int rank = 0; rank < kRanks; ++rank)
      teams_[static_cast<size_t>(rank)] = make_team(rank, 20 + static_cast<uint64_t>(between));
    for (const int rank : {0, 1}) start(make_bcast(team(rank), 0, rank));
    for (int i = 0; i < between; ++i)
      for (const int rank : {0, 1}) start(make_bcast(team(rank), 0, 0));
    ASSERT_TRUE(team(0).failure().ok() && team(1).failure().ok());
    start_ring_and_bruck();
    progress();
    if (between < 7)
      expect_named("bcast (binomial) #1 of 0 bytes, root 0", "bcast (binomial) #1 of 0 bytes, root 1");
    else
      expect_ring_and_bruck(static_cast<uint32_t>(between) + 2);
  }
}

// A root may be that far ahead. Of what comes for its first call now, the record is gone.
TEST_F(OtherCall, IsFoundAmongThoseThatAreKept) {
  start(make_bcast(team(1), 10, 1));
  for (int i = 0; i < 150; ++i) start(make_bcast(team(0), 0, i % 2));
  for (int i = 0; i < 150; ++i) start(make_bcast(team(1), 0, 0));
  progress();
  const std::string text = team(0).failure().text();
  EXPECT_NE(text.find("rank 0 calls bcast (binomial) #24 of 0 bytes, root 1"), std::string::npos) << text;
  EXPECT_NE(text.find("(collective #1 seems to differ, too: of the last 128 records are kept)"), std::string::npos);
}

// The rank that is behind has made none of those of which the other one still has a record.
TEST_F(OtherCall, OfARankThatIsFarAheadHasNoNameAnyMore) {
  start(make_bcast(team(1), 10, 1));
  for (int i = 0; i < 150; ++i) start(make_bcast(team(1), 10, 1));
  start(make_call(team(0), 10));
  progress();
  const std::string text = team(0).failure().text();
  EXPECT_NE(text.find("rank 0 is in allgather (ring) #1 of 10 bytes per block, and rank 1 in a call"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("; rank 1 is so far ahead that it has no record of its collective #1"), std::string::npos)
      << text;
}

TEST_F(OtherCall, IsAskedForOnceThereIsRoom) {
  start_ring_and_bruck();
  wire_.full = true;
  progress(1);
  EXPECT_FALSE(team(0).failure().ok());
  EXPECT_EQ(probes(), 0);
  wire_.full = false;
  wire_.now += 1'000'000;
  progress(1);
  EXPECT_EQ(probes(), 0);
  wire_.now += 4'000'000;
  progress(3);
  expect_ring_and_bruck();
}

TEST_F(OtherCall, IsAskedForAgainWithoutAnAnswer) {
  start_ring_and_bruck();
  progress(1);
  EXPECT_GT(probes(), 0);
  lose_all();
  wire_.now += 1'000'000;
  progress(3);
  EXPECT_EQ(team(0).failure().text().find("bruck"), std::string::npos) << team(0).failure().text();
  wire_.now += 19'000'000;
  progress(3);
  expect_ring_and_bruck();
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

// Each of two ranks waits for the other one, and rank 0 asks. It has suspected no call, so the answer names the two that
// differ, and no other one.
TEST_F(EngineTest, AnAnswerNamesNoCallThatWasNotSuspected) {
  const auto waits = make_bcast(team(0), 10, 1), also_waits = make_bcast(team(1), 10, 0);
  EXPECT_TRUE(waits->request->start().ok());
  EXPECT_TRUE(also_waits->request->start().ok());
  for (int i = 0; i < 12; ++i) {
    wire_.now += 250'000'000;
    engines_[0]->check();
    progress();
  }
  const Status& status = waits->request->status();
  EXPECT_EQ(status.code(), IBCOLL_ERR_MISMATCH);
  EXPECT_EQ(status.text().find("seems to differ, too"), std::string::npos) << status.text();
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
  constexpr int kCalls = 500;
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < kCalls; ++i)
    for (const int rank : {0, 1}) {
      calls.push_back(make_call(team(rank), 100));
      EXPECT_TRUE(calls.back()->request->start().ok());
    }
  for (int i = 0; i < 50; ++i)
    for (const int rank : {0, 1}) engines_[static_cast<size_t>(rank)]->progress();
  EXPECT_LE(wire_.boxes[2].size(), 3 * limits_.collectives_ahead);
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

// After 2^32 collectives their numbers begin anew; credit continues across that.
TEST_F(EngineTest, CreditIsCountedAcrossTheLastNumber) {
  const uint32_t ahead = limits_.collectives_ahead, group = std::max(1U, ahead / Ahead::kGroups);
  const uint32_t first = 0U - ahead / 2;
  Team& sender = team(0);
  const auto completes = [&](uint32_t op) {
    sender.on_note(1, {1, 0, 0, 0, op, static_cast<uint16_t>(NoteKind::kCompleted), 0}, {});
  };
  for (uint32_t i = 0; i < ahead; ++i)
    EXPECT_TRUE(sender.links().credit().may_send(*sender.links().credit().at(1), first + i)) << i;
  EXPECT_FALSE(sender.links().credit().may_send(*sender.links().credit().at(1), first + ahead));
  completes(first + group - 1);
  for (uint32_t i = 0; i < group; ++i)
    EXPECT_TRUE(sender.links().credit().may_send(*sender.links().credit().at(1), first + ahead + i)) << i;
  EXPECT_FALSE(sender.links().credit().may_send(*sender.links().credit().at(1), first + ahead + group));
  completes(first + ahead - 1);  // it is behind the last number
  for (uint32_t i = group; i < ahead; ++i)
    EXPECT_TRUE(sender.links().credit().may_send(*sender.links().credit().at(1), first + ahead + i)) << i;
  completes(first + 1);  // an old note
  EXPECT_FALSE(sender.links().credit().may_send(*sender.links().credit().at(1), first + 2 * ahead));
}

// Credit goes to ranks that send and get nothing back; but not from the last collective on, from which they may have
// left.
TEST_F(EngineTest, WhoPartsOwesNothingAnyMore) {
  const auto run = [this](int calls) {
    for (int i = 0; i < calls; ++i) {
      std::vector<std::unique_ptr<Call>> ring;
      for (int rank = 0; rank < kRanks; ++rank) {
        ring.push_back(make_call(team(rank), 20));
        EXPECT_TRUE(ring.back()->request->start().ok());
      }
      progress();
      for (const auto& call : ring) EXPECT_FALSE(call->request->in_flight());
    }
  };
  const auto credits = [this] {
    return std::count(wire_.kinds.begin(), wire_.kinds.end(), static_cast<uint16_t>(NoteKind::kCompleted));
  };
  const int enough = static_cast<int>(limits_.collectives_ahead / 2);
  run(enough);
  EXPECT_EQ(credits(), kRanks);
  run(enough - 1);
  EXPECT_EQ(credits(), kRanks);
  for (int rank = 0; rank < kRanks; ++rank) team(rank).links().part();
  run(1);
  EXPECT_EQ(credits(), kRanks);
}

// More calls are in flight than lists have room for at first, from a number on that is not the first one; records of all
// are kept.
TEST_F(EngineTest, ListsOfCallsInFlightGrow) {
  std::vector<std::unique_ptr<Call>> calls;
  const auto start = [&](int rank, int count) {
    for (int i = 0; i < count; ++i) {
      calls.push_back(make_call(team(rank), 100, "ring", static_cast<uint8_t>(i % 9)));
      ASSERT_TRUE(calls.back()->request->start().ok());
    }
  };
  for (int rank = 0; rank < kRanks; ++rank) start(rank, 5);
  progress();
  const uint32_t first = team(0).calls().next();
  const uint32_t many = 2 * team(0).calls().kept_records() + 3;
  start(0, static_cast<int>(many));
  EXPECT_EQ(team(0).calls().count(), static_cast<int>(many));
  for (uint32_t op = first; op < first + many; ++op) EXPECT_EQ(team(0).calls().record(op).op, op);
  for (const int rank : {1, 2}) start(rank, static_cast<int>(many));
  progress(3000);
  for (const auto& call : calls) ASSERT_FALSE(call->request->in_flight());
  for (size_t i = 0; i < calls.size(); ++i)
    EXPECT_TRUE(calls[i]->right(static_cast<uint8_t>((i < 15 ? i % 5 : (i - 15) % many) % 9))) << i;
  for (uint32_t op = first; op < first + many; ++op) EXPECT_EQ(team(0).calls().record(op).op, op);
}

// A program may make and free teams all its life, and credit of each may come late.
TEST_F(EngineTest, FreedTeamsLeaveNothingBehind) {
  const auto make_and_free = [this](uint64_t epoch) {
    make_team(0, epoch).reset();
    const Note late{epoch, 3, 1, 0, 1, static_cast<uint16_t>(NoteKind::kConsumed), 0};
    EXPECT_TRUE(transports_[1]->send(0, late, {}));
    wire_.kinds.clear();
    engines_[0]->progress();
  };
  for (uint64_t epoch = 100; epoch < 200; ++epoch) make_and_free(epoch);
  const size_t before = ::mallinfo2().uordblks;
  for (uint64_t epoch = 200; epoch < 20'000; ++epoch) make_and_free(epoch);
  EXPECT_LT(::mallinfo2().uordblks, before + 20'000);
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

}  // namespace
}  // namespace ibcoll
