// SPDX-License-Identifier: BSD-3-Clause
// Blocking calls that are one exchange of short messages, and what sends them the general way.
#include <algorithm>
#include <string_view>
#include <utility>

#include "tests/unit/engine_wire.h"

namespace ibcoll {
namespace {

class ShortExchangeTest : public EngineTest {
 protected:
  static constexpr uint32_t kLooks = 3;

  ShortExchangeTest() {
    limits_.eager_bytes = 100;
    limits_.collectives_ahead = 4;
  }
  // A call for each rank; messages go to and come from all.
  void make_calls(uint8_t round = 1, size_t bytes = 8) {
    calls_.clear();
    for (int rank = 0; rank < kRanks; ++rank) calls_.push_back(make_call(team(rank), bytes, "pap_direct", round));
  }
  Request& request(int rank) { return *calls_[static_cast<size_t>(rank)]->request; }
  Team::Short run(int rank) { return team(rank).run_short(request(rank), kLooks); }
  bool right(int rank, uint8_t round = 1) { return calls_[static_cast<size_t>(rank)]->right(round); }
  void expect_right(uint8_t round = 1) {
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_TRUE(team(rank).failure().ok()) << team(rank).failure().text();
      EXPECT_FALSE(request(rank).in_flight()) << rank;
      EXPECT_TRUE(right(rank, round)) << rank;
    }
  }
  void expect_failure(ibcoll_status_t code) {
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(team(rank).failure().code(), code) << rank << ": " << team(rank).failure().text();
      EXPECT_FALSE(request(rank).in_flight()) << rank;
    }
  }
  int64_t notes(NoteKind kind) {
    return std::count(wire_.kinds.begin(), wire_.kinds.end(), static_cast<uint16_t>(kind));
  }

  std::vector<std::unique_ptr<Call>> calls_;
};

TEST_F(ShortExchangeTest, TheLastRankIsDoneAtOnceAndTheOthersWait) {
  for (uint8_t round = 1; round < 20; ++round) {
    make_calls(round);
    EXPECT_EQ(run(0), Team::Short::kHandedOver);
    EXPECT_EQ(run(1), Team::Short::kHandedOver) << "it has the message of rank 0 only";
    EXPECT_EQ(run(2), Team::Short::kDone);
    EXPECT_TRUE(right(2, round));
    EXPECT_EQ(team(2).calls().completed(), round);
    progress();
    expect_right(round);
  }
  EXPECT_EQ(notes(NoteKind::kEager), 19 * 6) << "each message leaves once";
}

// The messages of a rank that is a call ahead are kept, and taken by that call.
TEST_F(ShortExchangeTest, MessagesOfTheNextCall) {
  make_calls(1);
  const auto first = std::move(calls_);
  make_calls(2);
  const auto run_first = [&](int rank) {
    return team(rank).run_short(*first[static_cast<size_t>(rank)]->request, kLooks);
  };
  EXPECT_EQ(run_first(0), Team::Short::kHandedOver);
  EXPECT_EQ(run_first(2), Team::Short::kHandedOver);
  EXPECT_EQ(run_first(1), Team::Short::kDone);
  EXPECT_EQ(run(1), Team::Short::kHandedOver) << "rank 1 is a call ahead";
  progress();
  EXPECT_TRUE(first[0]->right(1));
  EXPECT_TRUE(first[2]->right(1));
  EXPECT_EQ(run(0), Team::Short::kHandedOver) << "it has the message of rank 1, which came early";
  EXPECT_EQ(run(2), Team::Short::kDone);
  progress();
  expect_right(2);
}

// The message of the other rank is there before the call, and is combined where this rank's operand stands.
TEST_F(ShortExchangeTest, AMessageThatCameBeforeACallInPlace) {
  const Placement two({0, 1}, {0, 1});
  std::vector<std::unique_ptr<Team>> teams;
  std::vector<std::unique_ptr<Request>> requests;
  uint64_t operands[] = {100, 23};
  for (int rank = 0; rank < 2; ++rank) {
    teams.push_back(std::make_unique<Team>(*engines_[static_cast<size_t>(rank)], 2, two, rank, nullptr));
    Args args;
    args.collective = IBCOLL_ALLREDUCE;
    args.in_place = true;
    args.bytes = 8;
    args.count = 1;
    args.recv.base = reinterpret_cast<std::byte*>(&operands[rank]);
    args.reduction = Reduction(IBCOLL_SUM, IBCOLL_UINT64);
    requests.push_back(std::make_unique<Request>(
        *teams.back(), args, Choice{find_algorithm(IBCOLL_ALLREDUCE, "recursive_doubling")}, IBCOLL_SCHEME_AUTO, 3));
  }
  EXPECT_EQ(teams[1]->run_short(*requests[1], kLooks), Team::Short::kHandedOver);
  progress();
  EXPECT_EQ(teams[0]->run_short(*requests[0], kLooks), Team::Short::kDone);
  progress();
  EXPECT_FALSE(requests[1]->in_flight());
  for (const uint64_t sum : operands) EXPECT_EQ(sum, 123u);
}

TEST_F(ShortExchangeTest, MessagesOfOtherCallsStayWhereTheyAre) {
  make_calls();
  const std::vector<std::byte> data(8, std::byte{7});
  const Note later{1, 8, 1 + 64, 5, 0, static_cast<uint16_t>(NoteKind::kEager), 0};  // in the same list
  team(2).on_note(0, later, data);
  EXPECT_EQ(run(0), Team::Short::kHandedOver);
  EXPECT_EQ(run(1), Team::Short::kHandedOver);
  EXPECT_EQ(run(2), Team::Short::kDone);
  progress();
  expect_right();
}

TEST_F(ShortExchangeTest, AWireThatIsFull) {
  make_calls();
  wire_.full = true;
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(run(rank), Team::Short::kHandedOver);
  progress();
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_TRUE(request(rank).in_flight());
  wire_.full = false;
  progress();
  expect_right();
  EXPECT_EQ(notes(NoteKind::kEager), 6);
}

// Rank 0 sends to rank 1, and then there is no room for rank 2.
TEST_F(ShortExchangeTest, AWireThatIsFullForOneOfTheMessages) {
  make_calls();
  transports_[0]->most_messages = 1;
  EXPECT_EQ(run(0), Team::Short::kHandedOver);
  EXPECT_EQ(notes(NoteKind::kEager), 1);
  EXPECT_EQ(run(1), Team::Short::kHandedOver);
  EXPECT_EQ(run(2), Team::Short::kHandedOver);
  transports_[0]->most_messages = 1000;
  progress();
  expect_right();
  EXPECT_EQ(notes(NoteKind::kEager), 6);
}

// Ranks 0 and 1 are in a collective of the whole team that rank 2 has not begun, again and again, with one root.
TEST_F(ShortExchangeTest, CreditThatIsUsedUp) {
  std::vector<std::unique_ptr<Call>> sent;
  const auto make = [&](int rank) {
    auto call = std::make_unique<Call>();
    call->send.assign(8, 1);
    call->recv.assign(8 * kRanks, 0);
    Args args;
    args.collective = IBCOLL_GATHER;
    args.bytes = 8;
    args.root = 2;
    args.send.base = reinterpret_cast<std::byte*>(call->send.data());
    if (rank == 2) args.recv = {reinterpret_cast<std::byte*>(call->recv.data()), 8, nullptr, nullptr};
    call->request = std::make_unique<Request>(team(rank), args, Choice{find_algorithm(IBCOLL_GATHER, "linear")},
                                              IBCOLL_SCHEME_AUTO, 3);
    return call;
  };
  int done = 0;
  for (int i = 0; i < 10 && (i == 0 || !sent.back()->request->in_flight()); ++i) {
    sent.push_back(make(0));
    done += team(0).run_short(*sent.back()->request, kLooks) == Team::Short::kDone;
  }
  EXPECT_EQ(done, 4) << "as many as limits_ allows";
  EXPECT_TRUE(sent.back()->request->in_flight());
  const int calls = static_cast<int>(sent.size());
  for (int i = 0; i < calls; ++i) {
    sent.push_back(make(1));
    EXPECT_TRUE(sent.back()->request->start().ok());
  }
  for (int i = 0; i < calls; ++i) {
    sent.push_back(make(2));
    (void)team(2).run_short(*sent.back()->request, kLooks);
    progress();
    EXPECT_FALSE(sent.back()->request->in_flight());
    EXPECT_EQ(sent.back()->recv, std::vector<uint8_t>(sent.back()->recv.size(), 1)) << i;
  }
  for (const auto& call : sent) EXPECT_FALSE(call->request->in_flight());
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_TRUE(team(rank).failure().ok()) << team(rank).failure().text();
    EXPECT_EQ(engines_[static_cast<size_t>(rank)]->scheduler().questions_that_helped(), 0u);
  }
}

TEST_F(ShortExchangeTest, ARankInAnotherCall) {
  make_calls();
  calls_[1] = make_call(team(1), 16, "pap_direct");
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(run(rank), Team::Short::kHandedOver) << rank;
  progress();
  wait_seconds(2);
  expect_failure(IBCOLL_ERR_MISMATCH);
}

// The same, and what it sends has come before.
TEST_F(ShortExchangeTest, ARankThatWasInAnotherCallBefore) {
  make_calls();
  calls_[1] = make_call(team(1), 16, "pap_direct");
  EXPECT_EQ(run(1), Team::Short::kHandedOver);
  progress();
  EXPECT_EQ(run(0), Team::Short::kHandedOver);
  EXPECT_EQ(run(2), Team::Short::kHandedOver);
  progress();
  wait_seconds(2);
  expect_failure(IBCOLL_ERR_MISMATCH);
}

// Its messages have the length that the others expect.
TEST_F(ShortExchangeTest, ARankInAnotherCallOfTheSameLength) {
  make_calls();
  calls_[1]->request =
      std::make_unique<Request>(team(1), request(1).args(), request(1).choice(), IBCOLL_SCHEME_AUTO, 7);
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(run(rank), Team::Short::kHandedOver) << rank;
  progress();
  wait_seconds(2);
  expect_failure(IBCOLL_ERR_MISMATCH);
}

// A message too many, of the right call: before the others have come, after them, or before the call begins.
TEST_F(ShortExchangeTest, TwoMessagesOfOneRank) {
  for (const char* const when : {"first", "last", "early"}) {
    SCOPED_TRACE(when);
    const bool last = when == std::string_view("last"), early = when == std::string_view("early");
    if (last || early) {
      calls_.clear();
      teams_.clear();
      for (int rank = 0; rank < kRanks; ++rank) teams_.push_back(make_team(rank, 1));
    }
    make_calls();
    EXPECT_EQ(run(0), Team::Short::kHandedOver);
    EXPECT_EQ(run(1), Team::Short::kHandedOver);
    auto& box = wire_.boxes[2];
    ASSERT_EQ(box.size(), 2u);
    const Letter twice = box.front();
    box.insert(last ? box.end() : box.begin(), twice);
    if (early) engines_[2]->progress();
    EXPECT_EQ(run(2), Team::Short::kHandedOver);
    progress();
    wait_seconds(2);
    EXPECT_EQ(team(2).failure().code(), IBCOLL_ERR_MISMATCH);
  }
}

TEST_F(ShortExchangeTest, ADeath) {
  make_calls();
  EXPECT_EQ(run(0), Team::Short::kHandedOver);
  lose(2);
  EXPECT_EQ(run(1), Team::Short::kHandedOver);
  progress();
  wait_seconds(2);
  for (const int rank : {0, 1}) {
    EXPECT_EQ(team(rank).failure().code(), IBCOLL_ERR_PEER_FAILED) << rank;
    EXPECT_FALSE(request(rank).in_flight()) << rank;
  }
}

// All that it needs has come before the report of the death.
TEST_F(ShortExchangeTest, ADeathAfterTheLastMessage) {
  make_calls();
  EXPECT_EQ(run(0), Team::Short::kHandedOver);
  EXPECT_EQ(run(1), Team::Short::kHandedOver);
  wire_.boxes[2].push_back({0, {}, text("it fell"), true});
  EXPECT_EQ(run(2), Team::Short::kDone);
  EXPECT_TRUE(right(2));
  EXPECT_FALSE(team(2).failure().ok());
  EXPECT_EQ(run(2), Team::Short::kNo);
}

TEST_F(ShortExchangeTest, AnotherCallIsInFlight) {
  make_calls();
  const auto other = make_call(team(0), 8);
  ASSERT_TRUE(other->request->start().ok());
  EXPECT_EQ(run(0), Team::Short::kNo);
  EXPECT_EQ(team(0).calls().next(), 2u) << "nothing has happened";
  team(0).health().fail(error(IBCOLL_ERR_SYSTEM, "enough"));
  progress();
  EXPECT_FALSE(other->request->in_flight());
}

// What the call gives counts, not what the request was made for.
TEST_F(ShortExchangeTest, OtherBuffers) {
  make_calls();
  for (int rank = 0; rank < kRanks; ++rank) (void)run(rank);
  progress();
  std::vector<uint8_t> send[kRanks], recv[kRanks];
  for (int rank = 0; rank < kRanks; ++rank) {
    send[rank].assign(8, static_cast<uint8_t>(100 + rank));
    recv[rank].resize(8 * kRanks);
    request(rank).move_to(reinterpret_cast<std::byte*>(send[rank].data()),
                          reinterpret_cast<std::byte*>(recv[rank].data()));
    (void)run(rank);
  }
  progress();
  expect_right();
  for (int rank = 0; rank < kRanks; ++rank)
    for (size_t i = 0; i < recv[rank].size(); ++i) EXPECT_EQ(recv[rank][i], 100 + i / 8) << rank << ", " << i;
}

TEST_F(ShortExchangeTest, LongMessagesAreNone) {
  make_calls(1, 100);
  EXPECT_TRUE(request(0).may_be_short());
  make_calls(1, 101);
  EXPECT_FALSE(request(0).may_be_short());
  make_calls(1, 100);
  EXPECT_FALSE(make_call(team(0), 8, "ring")->request->may_be_short()) << "messages of it wait for others";
  const Request announced(team(0), request(0).args(), request(0).choice(), IBCOLL_SCHEME_ZERO_COPY, 1);
  EXPECT_FALSE(announced.may_be_short());
}

}  // namespace
}  // namespace ibcoll
