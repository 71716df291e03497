// SPDX-License-Identifier: BSD-3-Clause
// How ranks learn that a collective cannot complete, and by which text.
#include <cstring>
#include <functional>
#include <utility>

#include "runtime/engine/abort_note.h"
#include "tests/unit/engine_node.h"

namespace ibcoll {
namespace {

TEST_F(EngineTest, ADeathIsNamedByAllAndEndsTheTeam) {
  std::vector<std::unique_ptr<Call>> calls;
  for (const int rank : {0, 2}) {
    calls.push_back(make_call(team(rank), 20'000));
    EXPECT_TRUE(calls.back()->request->start().ok());
  }
  progress();
  lose(1);
  wait_seconds(1);
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
  wait_seconds(1);
  EXPECT_EQ(team(2).failure().code(), IBCOLL_ERR_PEER_FAILED);
  EXPECT_NE(team(2).failure().text().find("reported by rank 0"), std::string::npos) << team(2).failure().text();
}

TEST_F(EngineTest, ADeathExplainsWhatWasSuspected) {
  auto call = make_call(team(0), 20'000);
  EXPECT_TRUE(call->request->start().ok());
  team(0).health().suspect(error(IBCOLL_ERR_SYSTEM, "a read failed"));
  progress();
  EXPECT_TRUE(call->request->in_flight());
  lose(1);
  wire_.boxes[2].clear();  // rank 2 has not noticed
  wait_seconds(1);
  EXPECT_FALSE(call->request->in_flight());
  for (const int rank : {0, 2}) {
    EXPECT_EQ(team(rank).failure().code(), IBCOLL_ERR_PEER_FAILED);
    EXPECT_NE(team(rank).failure().text().find("rank 1"), std::string::npos) << team(rank).failure().text();
  }
}

// Rank 2 has lost rank 1 and tells rank 0 of it, which ends; rank 0's end is seen before rank 2's note is here.
TEST_F(EngineTest, ADeathThatIsAnEffectIsNotNamed) {
  auto call = make_call(team(1), 20'000);
  EXPECT_TRUE(call->request->start().ok());
  lose(0);
  wire_.boxes[2].clear();  // rank 2 knows of another one
  progress();
  EXPECT_TRUE(call->request->in_flight());
  team(2).health().fail(error(IBCOLL_ERR_PEER_FAILED, "rank 3 fell"));
  progress();
  EXPECT_EQ(call->request->status().code(), IBCOLL_ERR_PEER_FAILED);
  EXPECT_NE(team(1).failure().text().find("rank 3 fell (reported by rank 2"), std::string::npos)
      << team(1).failure().text();
}

// Rank 1's end may be an effect; that rank 0 lacks what it needs to reach rank 2 is a reason of its own.
TEST_F(EngineTest, WhatThisRankLacksEndsTheDoubtAboutADeath) {
  auto call = make_call(team(0), 20'000);
  EXPECT_TRUE(call->request->start().ok());
  lose(1);
  wire_.boxes[2].clear();
  progress();
  EXPECT_TRUE(call->request->in_flight());
  wire_.boxes[0].push_back({2, {}, text("no room"), true, lack_token(IBCOLL_ERR_TRANSPORT)});
  progress(1);
  EXPECT_FALSE(call->request->in_flight()) << "no rank can be notified, and none is awaited";
  EXPECT_EQ(call->request->status().code(), IBCOLL_ERR_TRANSPORT);
  EXPECT_EQ(call->request->status().text(), "rank 0 cannot reach rank 2: no room");
}

// They tell the one that it does not reach, which may wait for this rank.
TEST_F(EngineTest, WhatThisRankLacksIsToldAtOnceToThoseThatItReaches) {
  wire_.boxes[0].push_back({2, {}, text("no room"), true, lack_token(IBCOLL_ERR_TRANSPORT)});
  progress();
  const std::string reported = "rank 0 cannot reach rank 2: no room (reported by rank 0 of the team)";
  EXPECT_EQ(team(1).failure().text(), reported);
  EXPECT_EQ(team(2).failure().text(), reported + " (reported by rank 1 of the team)");
}

// The next call does not come too early for the story either.
TEST_F(EngineTest, WhatIsStartedInDoubtEndsWithWhatIsFound) {
  lose(0);
  wire_.boxes[2].clear();
  progress();
  auto call = make_call(team(1), 20'000);
  EXPECT_TRUE(call->request->start().ok());
  EXPECT_TRUE(call->request->in_flight());
  team(2).health().fail(error(IBCOLL_ERR_PEER_FAILED, "rank 3 fell"));
  progress();
  EXPECT_FALSE(call->request->in_flight());
  EXPECT_NE(call->request->status().text().find("rank 3 fell"), std::string::npos) << call->request->status().text();
  EXPECT_EQ(call->request->start().code(), IBCOLL_ERR_PEER_FAILED);
}

TEST_F(EngineTest, ATeamThatIsFreedInDoubtTellsTheOthers) {
  auto one = make_team(1, 7), two = make_team(2, 7);
  lose(0);
  wire_.boxes[2].clear();
  progress();
  EXPECT_TRUE(two->failure().ok());
  one.reset();
  progress();
  EXPECT_NE(two->failure().text().find("reported by rank 1"), std::string::npos) << two->failure().text();
}

TEST_F(EngineTest, LeavingRanksPassAFailureOnAlongTheirConnections) {
  wire_.line = true;
  for (int rank = 0; rank < kRanks; ++rank) team(rank).links().set_connects(false);
  team(0).health().fail(error(IBCOLL_ERR_SYSTEM, "it broke"));
  progress();
  EXPECT_EQ(team(2).failure().code(), IBCOLL_ERR_SYSTEM);
  EXPECT_NE(team(2).failure().text().find("reported by rank 1"), std::string::npos) << team(2).failure().text();
  EXPECT_EQ(wire_.begun, 0);
}

TEST_F(EngineTest, BuffersThatAPeerWritesToAreNotGivenBack) {
  wire_.writing = true;
  auto call = make_call(team(0), 20'000);
  EXPECT_TRUE(call->request->start().ok());
  team(0).health().fail(error(IBCOLL_ERR_SYSTEM, "it broke"));
  wait_seconds(9);
  EXPECT_TRUE(call->request->in_flight());
  EXPECT_TRUE(call->request->overdue().ok());
  wait_seconds(2);
  const Status overdue = call->request->overdue();
  EXPECT_EQ(overdue.code(), IBCOLL_ERR_BUFFERS_HELD);
  EXPECT_NE(overdue.text().find("it broke"), std::string::npos) << overdue.text();
  EXPECT_NE(overdue.text().find("rank 2 is in the middle of a write"), std::string::npos) << overdue.text();
  EXPECT_TRUE(call->request->in_flight());
  wire_.writing = false;
  progress();
  EXPECT_FALSE(call->request->in_flight());
  EXPECT_TRUE(call->request->overdue().ok());
  EXPECT_EQ(call->request->status().code(), IBCOLL_ERR_SYSTEM);
}

// ... nor if there is no memory to end that.
TEST_F(EngineTest, BuffersWaitForTheMemoryThatEndsAWrite) {
  wire_.writing = wire_.no_memory = true;
  auto call = make_call(team(0), 20'000);
  EXPECT_TRUE(call->request->start().ok());
  team(0).health().fail(error(IBCOLL_ERR_SYSTEM, "it broke"));
  progress();
  EXPECT_TRUE(call->request->in_flight());
  wire_.writing = wire_.no_memory = false;
  progress();
  EXPECT_FALSE(call->request->in_flight());
  EXPECT_EQ(call->request->status().code(), IBCOLL_ERR_SYSTEM);
}

// ... nor are those from which the transport still sends.
TEST_F(EngineTest, BuffersThatAreStillSentAreNotGivenBack) {
  wire_.slow = true;
  auto call = make_call(team(0), 20'000), right = make_call(team(1), 20'000);
  EXPECT_TRUE(right->request->start().ok());
  EXPECT_TRUE(call->request->start().ok());
  engines_[0]->progress();
  ASSERT_FALSE(wire_.puts.empty());
  const uint64_t token = wire_.puts.front();
  team(0).health().fail(error(IBCOLL_ERR_SYSTEM, "it broke"));
  progress();
  EXPECT_TRUE(call->request->in_flight());
  EXPECT_GT(transports_[0]->wanted_back, 0);
  wait_seconds(11);
  EXPECT_NE(call->request->overdue().text().find("1 messages of it are still being sent"), std::string::npos)
      << call->request->overdue().text();
  for (const uint64_t done : wire_.puts) wire_.boxes[done == token ? 0 : 1].push_back({-1, {}, {}, false, done});
  progress();
  EXPECT_FALSE(call->request->in_flight());
  EXPECT_EQ(call->request->status().code(), IBCOLL_ERR_SYSTEM);
}

TEST_F(EngineTest, WhatNothingExplainsIsToldAsItIs) {
  auto call = make_call(team(0), 20'000);
  EXPECT_TRUE(call->request->start().ok());
  team(0).health().suspect(error(IBCOLL_ERR_SYSTEM, "a read failed"));
  wait_seconds(1);
  EXPECT_EQ(call->request->status().code(), IBCOLL_ERR_SYSTEM);
  EXPECT_EQ(team(2).failure().code(), IBCOLL_ERR_SYSTEM);
}

TEST_F(EngineTest, AWaitThatIsTooLongSaysForWhat) {
  auto call = make_call(team(0), 10);
  EXPECT_TRUE(call->request->start().ok());
  EXPECT_NE(engines_[0]->describe().find("rank 0: allgather (ring) #1 of 10 bytes per block waits for data of rank"),
            std::string::npos)
      << engines_[0]->describe();
  wait_seconds(590);
  EXPECT_TRUE(call->request->in_flight());
  wait_seconds(20);
  EXPECT_EQ(call->request->status().code(), IBCOLL_ERR_TIMEOUT);
  EXPECT_NE(call->request->status().text().find("IBCOLL_TIMEOUT"), std::string::npos);
  EXPECT_EQ(engines_[0]->describe(), "");
  EXPECT_GT(transports_[0]->checks, 0);
  EXPECT_EQ(team(1).failure().code(), IBCOLL_ERR_TIMEOUT) << "the others are notified";
}

TEST_F(EngineTest, AFailedTeamStartsNothing) {
  auto call = make_call(team(0), 10);
  lose(1);
  wait_seconds(1);
  EXPECT_EQ(call->request->start().code(), IBCOLL_ERR_PEER_FAILED);
  EXPECT_FALSE(call->request->in_flight());
}

// A rank that was not notified, as the wire was full, asks while it waits, and is answered.
TEST_F(EngineTest, WhoMissedTheFailureLearnsOfItByAsking) {
  constexpr int kMoreThanItTries = 11'000;
  wire_.full = true;
  team(0).health().fail(error(IBCOLL_ERR_SYSTEM, "it broke"));
  progress(kMoreThanItTries);
  wire_.full = false;
  auto call = make_call(team(1), 10);
  EXPECT_TRUE(call->request->start().ok());
  progress();
  EXPECT_TRUE(call->request->in_flight());
  wait_seconds(3);
  EXPECT_EQ(call->request->status().code(), IBCOLL_ERR_SYSTEM);
  EXPECT_NE(team(1).failure().text().find("it broke (reported by rank 0"), std::string::npos)
      << team(1).failure().text();
}

// A rank sleeps only where one other can end all that it waits for.
TEST_F(EngineOfANodeTest, KnowsForWhomItMaySleep) {
  const auto teams = make_teams();
  Engine& engine = *engines_[1];
  EXPECT_EQ(engine.awaited_bell(), Exchange::kNoBell) << "nothing is in flight";
  const auto first = start_barrier(*teams[1]);
  EXPECT_EQ(engine.awaited_bell(), 2);
  EXPECT_FALSE(engine.scheduler().awaits_leaders()) << "of a barrier each rank publishes all";
  const auto later = start_barrier(*teams[1]);
  EXPECT_EQ(engine.awaited_bell(), 2) << "the second one waits for the first";
  const auto last = start_barrier(*teams[2]);
  engine.progress();
  EXPECT_EQ(engine.awaited_bell(), 0);
  const auto call = make_call(team(1), 100);
  ASSERT_TRUE(call->request->start().ok());
  EXPECT_EQ(engine.awaited_bell(), Exchange::kNoBell) << "messages are awaited, too";
  teams[1]->health().fail(error(IBCOLL_ERR_INTERNAL, "enough"));
  team(1).health().fail(error(IBCOLL_ERR_INTERNAL, "enough"));
  progress();
  for (auto& one : teams) one->health().fail(error(IBCOLL_ERR_INTERNAL, "enough"));
  progress();
}

// In the node window nobody needs notes, and a rank that has given up may never take one again: it is seen there.
TEST_F(EngineOfANodeTest, WhoHasGivenUpIsSeenInTheNodeWindow) {
  const auto teams = make_teams();
  const auto barrier = start_barrier(*teams[0]);
  wire_.full = true;
  teams[2]->health().fail(error(IBCOLL_ERR_SYSTEM, "it broke"));
  wait_seconds(3);
  EXPECT_EQ(teams[0]->failure().code(), IBCOLL_ERR_SYSTEM);
  EXPECT_NE(teams[0]->failure().text().find("rank 2 of the job ended it with an error"), std::string::npos)
      << teams[0]->failure().text();
  wire_.full = false;
  progress();
  EXPECT_EQ(barrier->status().code(), IBCOLL_ERR_SYSTEM);
}

// Neighbours would take it for the cause.
TEST_F(EngineOfANodeTest, WhoIsInDoubtHasNotLeftTheNodeWindow) {
  const auto left = make_window(1);
  auto team = make_team(0, 9, make_window(0));
  lose(2);
  progress();
  EXPECT_FALSE(team->failure().ok());
  EXPECT_EQ(left->presence().failure_of(0), 0);
  wait_seconds(1);
  EXPECT_EQ(left->presence().failure_of(0), IBCOLL_ERR_PEER_FAILED);
}

// Its memory is its caller's again, whatever the read brought.
TEST_F(EngineOfANodeTest, WhoGivesUpWhileItsMemoryIsReadHasGivenNothing) {
  const auto teams = make_teams();
  const auto root = make_window(0);
  std::vector<std::byte> buffers[2] = {std::vector<std::byte>(100), std::vector<std::byte>(100)};
  const auto sent = start_bcast(*teams[0], buffers[0]);
  node_.while_read = [&] { root->presence().report_failure(IBCOLL_ERR_SYSTEM); };
  const auto received = start_bcast(*teams[1], buffers[1]);
  EXPECT_EQ(teams[1]->failure().code(), IBCOLL_ERR_SYSTEM);
  EXPECT_NE(teams[1]->failure().text().find("rank 0 failed while its memory was read"), std::string::npos)
      << teams[1]->failure().text();
  wait_seconds(1);
  EXPECT_EQ(received->status().code(), IBCOLL_ERR_SYSTEM);
}

// The owner sleeps until the reader's next step, and must send before that.
TEST_F(EngineOfANodeTest, WhoMayNotReadWakesTheOwner) {
  const auto teams = make_teams();
  std::vector<std::byte> buffers[kRanks];
  for (std::vector<std::byte>& buffer : buffers) buffer.resize(100);
  const auto sent = start_bcast(*teams[0], buffers[0]);
  uint32_t before = 0;
  node_.refuses = true;
  node_.while_read = [&] {
    before = bells_[1].wakeups.load();
    doorbells_[0].subscribe(1);
  };
  const auto received = start_bcast(*teams[1], buffers[1]);
  EXPECT_EQ(bells_[1].wakeups.load(), before + 1);
  node_.while_read = nullptr;
  const auto also_received = start_bcast(*teams[2], buffers[2]);
  progress();
  for (const auto* const call : {&sent, &received, &also_received}) EXPECT_FALSE((*call)->in_flight());
}

// Another process may have got the number of one that has ended.
TEST_F(EngineOfANodeTest, WhatWasReadCountsOnceItIsKnownWhoseItWas) {
  const auto teams = make_teams();
  std::vector<std::byte> buffers[2] = {std::vector<std::byte>(100), std::vector<std::byte>(100)};
  const auto sent = start_bcast(*teams[0], buffers[0]);
  node_.confirmed = error(IBCOLL_ERR_PEER_FAILED, "it was not rank 0");
  const auto received = start_bcast(*teams[1], buffers[1]);
  wait_seconds(1);
  EXPECT_EQ(received->status().code(), IBCOLL_ERR_PEER_FAILED);
  EXPECT_FALSE(sent->status().ok()) << "the root cannot know of it otherwise";
}

// Neither a mismatch nor a timeout, which would blame ranks that did nothing wrong.
TEST_F(EngineOfANodeTest, SharedMemoryThatIsSpoiledIsNamed) {
  for (const std::byte junk : {std::byte{0xff}, std::byte{0x5a}, std::byte{0}}) {
    spoil(std::byte{0});
    const auto teams = make_teams();
    const auto first = start_barrier(*teams[0]), second = start_barrier(*teams[1]);
    spoil(junk);
    const auto third = start_barrier(*teams[2]);
    wait_seconds(5);
    EXPECT_EQ(teams[2]->failure().code(), IBCOLL_ERR_SYSTEM);
    EXPECT_NE(teams[2]->failure().text().find("spoiled"), std::string::npos) << teams[2]->failure().text();
    EXPECT_EQ(first->status().code(), IBCOLL_ERR_SYSTEM);
  }
}

// Its part was complete, and it did not wait for the others to look.
TEST_F(EngineOfANodeTest, WhatARankPublishedBeforeItsDeathCounts) {
  const auto teams = make_teams();
  const auto barrier = start_barrier(*teams[0]);
  progress();
  EXPECT_TRUE(barrier->in_flight());
  const auto first = start_barrier(*teams[1]), second = start_barrier(*teams[2]);
  EXPECT_FALSE(second->in_flight());
  lose(2);
  progress();
  EXPECT_FALSE(barrier->in_flight());
  EXPECT_TRUE(barrier->status().ok()) << barrier->status().text();
  EXPECT_FALSE(teams[0]->failure().ok());
}

// The note that tells of the failure is taken before memory is looked at.
TEST_F(EngineOfANodeTest, WhatARankPublishedBeforeItToldOfAFailureCounts) {
  const auto teams = make_teams();
  const auto barrier = start_barrier(*teams[0]);
  const auto first = start_barrier(*teams[1]), second = start_barrier(*teams[2]);
  teams[2]->health().fail(error(IBCOLL_ERR_SYSTEM, "it broke"));
  engines_[2]->progress();
  progress();
  EXPECT_TRUE(barrier->status().ok()) << barrier->status().text();
  EXPECT_EQ(teams[0]->failure().code(), IBCOLL_ERR_SYSTEM);
}

TEST_F(EngineOfANodeTest, WhatARankPublishedBeforeItGaveUpCounts) {
  const auto teams = make_teams();
  const auto barrier = start_barrier(*teams[0]);
  wait_seconds(1);
  const auto first = start_barrier(*teams[1]), second = start_barrier(*teams[2]);
  wire_.full = true;
  teams[2]->health().fail(error(IBCOLL_ERR_SYSTEM, "it broke"));
  engines_[2]->progress();
  wire_.now += 2'000'000'000;
  engines_[0]->check();
  progress();
  EXPECT_FALSE(barrier->in_flight());
  EXPECT_TRUE(barrier->status().ok()) << barrier->status().text();
}

// A team may be agreed upon with a rank's last words.
TEST_F(EngineTest, ATeamLearnsOfDeathsBeforeIt) {
  lose(1);
  progress();
  const auto late = make_team(0, 5);
  EXPECT_EQ(late->failure().code(), IBCOLL_ERR_PEER_FAILED);
  EXPECT_NE(late->failure().text().find("rank 1"), std::string::npos) << late->failure().text();
}

// Rank 2 has completed the call, and refuses its next one, before rank 0 has what it needs of rank 1.
TEST_F(EngineTest, ACallBeforeTheOneThatFailedEndsWell) {
  std::vector<std::unique_ptr<Call>> calls;
  for (int rank = 0; rank < kRanks; ++rank) {
    calls.push_back(make_call(team(rank), 100));
    ASSERT_TRUE(calls.back()->request->start().ok());
  }
  for (int i = 0; i < 50; ++i)
    for (const int rank : {1, 2}) engines_[static_cast<size_t>(rank)]->progress();
  ASSERT_TRUE(calls[0]->request->in_flight());
  const Status refused = error(IBCOLL_ERR_MISMATCH, "rank 2: no second call");
  const auto abort_of = [&](uint32_t op) { team(0).on_note(2, abort_note(1, refused, 1, op), abort_text(refused)); };
  abort_of(2);
  abort_of(2);
  EXPECT_TRUE(team(0).failure().ok());
  progress();
  EXPECT_FALSE(calls[0]->request->in_flight());
  EXPECT_TRUE(calls[0]->request->status().ok()) << calls[0]->request->status().text();
  EXPECT_TRUE(calls[0]->right(1));
  EXPECT_NE(team(0).failure().text().find("no second call"), std::string::npos);
}

// Rank 2 refuses its third call before rank 1, which refuses the second one, knows of that.
TEST_F(EngineTest, OfTwoLaterCallsThatFailedTheFirstCounts) {
  std::vector<std::unique_ptr<Call>> calls;
  for (int rank = 0; rank < kRanks; ++rank) {
    calls.push_back(make_call(team(rank), 100));
    ASSERT_TRUE(calls.back()->request->start().ok());
  }
  const auto abort_of = [&](int peer, uint32_t op, const char* why) {
    const Status refused = error(IBCOLL_ERR_MISMATCH, "{}", why);
    team(0).on_note(peer, abort_note(1, refused, 0, op), abort_text(refused));
  };
  abort_of(2, 3, "no third call");
  abort_of(1, 2, "no second call");
  abort_of(2, 3, "no third call");
  EXPECT_TRUE(team(0).failure().ok());
  progress();
  EXPECT_TRUE(calls[0]->request->status().ok()) << calls[0]->request->status().text();
  EXPECT_NE(team(0).failure().text().find("no second call"), std::string::npos) << team(0).failure().text();
  EXPECT_EQ(team(0).health().failed_op(), 2u);
}

// What never comes does not keep the failure from being reported.
TEST_F(EngineTest, ACallBeforeTheOneThatFailedIsNotWaitedForLong) {
  const auto call = make_call(team(0), 100);
  ASSERT_TRUE(call->request->start().ok());
  const Status refused = error(IBCOLL_ERR_MISMATCH, "no second call");
  team(0).on_note(1, abort_note(1, refused, 0, 2), abort_text(refused));
  EXPECT_TRUE(team(0).failure().ok());
  wait_seconds(5);
  EXPECT_EQ(call->request->status().code(), IBCOLL_ERR_MISMATCH);
}

// The death is the reason, whatever calls differ since.
TEST_F(EngineTest, ADeathIsNotExplainedByACall) {
  TeamHealth& health = team(0).health();
  health.on_death(1, "it fell");
  health.explain(error(IBCOLL_ERR_MISMATCH, "other sizes"), 7);
  EXPECT_EQ(team(0).failure().code(), IBCOLL_ERR_PEER_FAILED);
  EXPECT_EQ(health.failed_op(), 0u);
}

TEST_F(EngineTest, TheCallThatFailedEndsAtOnce) {
  const auto call = make_call(team(0), 100);
  ASSERT_TRUE(call->request->start().ok());
  const Status refused = error(IBCOLL_ERR_MISMATCH, "other sizes");
  team(0).on_note(1, abort_note(1, refused, 0, 1), abort_text(refused));
  progress();
  EXPECT_EQ(call->request->status().code(), IBCOLL_ERR_MISMATCH);
}

}  // namespace
}  // namespace ibcoll
