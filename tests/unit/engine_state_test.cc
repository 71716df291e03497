// SPDX-License-Identifier: BSD-3-Clause
// A request, a collective or a team leaves nothing for the next one.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>

#include "tests/unit/engine_wire.h"

namespace ibcoll {
namespace {

// A persistent collective that is started once in an hour has its whole time in each run.
TEST_F(EngineTest, ATimeoutCountsFromTheLastStart) {
  std::vector<std::unique_ptr<Call>> calls;
  for (int rank = 0; rank < kRanks; ++rank) calls.push_back(make_call(team(rank), 10));
  EXPECT_TRUE(calls[0]->request->start().ok());
  wait_seconds(1);
  for (const int rank : {1, 2}) EXPECT_TRUE(calls[static_cast<size_t>(rank)]->request->start().ok());
  progress();
  ASSERT_FALSE(calls[0]->request->in_flight());
  wire_.now += 2 * limits_.timeout_ns;
  EXPECT_TRUE(calls[0]->request->start().ok());
  wait_seconds(1);
  EXPECT_TRUE(calls[0]->request->in_flight());
  EXPECT_TRUE(team(0).failure().ok()) << team(0).failure().text();
}

class EngineWithoutTimeout : public EngineTest {
 protected:
  EngineWithoutTimeout() { limits_.timeout_ns = 0; }
};

TEST_F(EngineWithoutTimeout, ACollectiveWaitsForever) {
  auto call = make_call(team(0), 10);
  EXPECT_TRUE(call->request->start().ok());
  wait_seconds(1000);
  EXPECT_TRUE(call->request->in_flight());
  EXPECT_TRUE(team(0).failure().ok()) << team(0).failure().text();
}

TEST_F(EngineTest, CollectivesMayEndInAnyOrder) {
  auto first = make_call(team(0), 10), nothing = make_call(team(0), 0);
  EXPECT_TRUE(first->request->start().ok());
  EXPECT_TRUE(nothing->request->start().ok());
  EXPECT_FALSE(nothing->request->in_flight());
  EXPECT_EQ(team(0).calls().completed(), 0u);
  std::vector<std::unique_ptr<Call>> others;
  for (const int rank : {1, 2}) {
    others.push_back(make_call(team(rank), 10));
    EXPECT_TRUE(others.back()->request->start().ok());
  }
  progress();
  EXPECT_FALSE(first->request->in_flight());
  EXPECT_EQ(team(0).calls().completed(), 2u);
}

// A rank that waits asks once per stall, however often the engine looks.
TEST_F(EngineTest, AStalledCollectiveAsksOncePerStall) {
  auto call = make_call(team(0), 10);
  EXPECT_TRUE(call->request->start().ok());
  wire_.now += 1;
  engines_[0]->check();
  wire_.now += limits_.stall_ns + 1;
  for (int look = 0; look < 10; ++look) engines_[0]->check();
  EXPECT_EQ(std::count(wire_.kinds.begin(), wire_.kinds.end(), static_cast<uint16_t>(NoteKind::kProbe)), 1);
}

// That rank may be the first one of the team.
TEST_F(EngineTest, ATeamLearnsThatARankIsOutOfReach) {
  const auto code = static_cast<uint64_t>(static_cast<int64_t>(IBCOLL_ERR_SYSTEM));
  wire_.boxes[1].push_back({0, {}, text("no route"), true, code});
  progress();
  EXPECT_EQ(team(1).failure().code(), IBCOLL_ERR_SYSTEM);
  const auto late = make_team(1, 5);
  EXPECT_EQ(late->failure().code(), IBCOLL_ERR_SYSTEM) << late->failure().text();
}

// Notes that come early lie in few lists: the last one of a list may be taken before others.
TEST_F(EngineTest, EarlyNotesOfLaterCallsAreKeptInOrder) {
  constexpr uint32_t kCalls = 256;  // more than there are lists
  for (uint32_t later = 2; later < kCalls; later *= 2) {
    std::vector<std::unique_ptr<Team>> made;
    for (int rank = 0; rank < kRanks; ++rank) made.push_back(make_team(rank, 10 + later));
    std::vector<std::unique_ptr<Call>> calls;
    const auto start = [&](int rank) {
      calls.push_back(make_call(*made[static_cast<size_t>(rank)], 10));
      EXPECT_TRUE(calls.back()->request->start().ok());
    };
    start(2);
    const Note note{10 + later, 0,
                    1 + later,  calls[0]->request->exchange().signature(),
                    0,          static_cast<uint16_t>(NoteKind::kConsumed),
                    0};
    made[0]->on_note(1, note, {});  // before that of rank 2's first call
    progress(2);
    for (const int rank : {0, 1}) start(rank);
    for (uint32_t i = 1; i < later; ++i)
      for (const int rank : {0, 1, 2}) start(rank);
    progress();
    start(2);
    progress(2);
    for (const int rank : {0, 1}) start(rank);
    progress();
    for (const auto& call : calls) ASSERT_FALSE(call->request->in_flight()) << later;
  }
}

// The engine remembers the team of the last note. What stands in that memory later names no team.
TEST_F(EngineTest, TheLastTeamIsForgottenWhenItIsFreed) {
  constexpr int kJunk = 0x5a;
  constexpr uint64_t kNoTeam = 0x5a5a5a5a5a5a5a5a;
  const auto memory = std::make_unique<std::byte[]>(sizeof(Team) + alignof(Team));
  void* place = memory.get();
  size_t room = sizeof(Team) + alignof(Team);
  ASSERT_TRUE(std::align(alignof(Team), sizeof(Team), place, room));
  const auto placement = std::make_shared<const Placement>(std::vector<int>{0, 1, 2}, std::vector<int>{0, 1, 2});
  Team* const other = new (place) Team(*engines_[0], 5, placement, 0, nullptr);
  Note late{5, 0, 0, 0, 0, static_cast<uint16_t>(NoteKind::kCompleted), 0};
  EXPECT_TRUE(transports_[1]->send(0, late, {}));
  progress();
  other->~Team();
  std::memset(place, kJunk, sizeof(Team));
  late.epoch = kNoTeam;
  EXPECT_TRUE(transports_[1]->send(0, late, {}));
  progress();
  EXPECT_TRUE(team(0).failure().ok());
}

// Pieces of a long message may be longer than eager messages are.
TEST_F(EngineTest, AnEarlyMessageHasRoomForItsPayload) {
  const std::vector<std::byte> payload(4 * limits_.eager_bytes + 1000);
  EarlyMessage* const lesser = engines_[0]->early_messages().copy(1, {}, ConstBytes(payload).first(1000));
  engines_[0]->early_messages().recycle(lesser);
  EarlyMessage* const larger = engines_[0]->early_messages().copy(1, {}, payload);
  EXPECT_GE(larger->capacity, payload.size());
  engines_[0]->early_messages().recycle(larger);
}

// In place a rank sends what lies where it receives: peers that ask compare this.
TEST_F(EngineTest, InPlaceARankSendsWhatItReceives) {
  std::vector<std::byte> buffer(60);
  const uint64_t counts[] = {10, 20, 30}, displacements[] = {0, 10, 30};
  Args args;
  args.collective = IBCOLL_ALLTOALLV;
  args.in_place = true;
  args.recv = {buffer.data(), 0, counts, displacements};
  EXPECT_EQ(pair_bytes(args, 0, 1).sent, 20u);
  EXPECT_EQ(pair_bytes(args, 0, 2).received, 30u);
}

// A peer that waits says what it sends and expects; more is as wrong as less, in both directions.
TEST_F(EngineTest, APeerThatAsksMustAgreeOnBothDirections) {
  const auto failure_with = [this](uint64_t sent, uint64_t received) {
    const uint64_t epoch = 100 + 1000 * sent + received;
    const std::unique_ptr<Team> team = make_team(0, epoch);
    std::vector<std::byte> from(65), into(60);
    const uint64_t sends[] = {10, 20, 30}, counts[] = {10, 25, 25}, displacements[] = {0, 10, 35};
    Args args;
    args.collective = IBCOLL_ALLTOALLV;
    args.send = {from.data(), 0, sends, displacements};
    args.recv = {into.data(), 0, counts, displacements};
    Request request(*team, args, Choice{find_algorithm(IBCOLL_ALLTOALLV, "direct")}, IBCOLL_SCHEME_AUTO, 1);
    EXPECT_TRUE(request.start().ok());
    const PairBytes theirs{sent, received};
    const Note asks{epoch, 0, 1, 1, 0, static_cast<uint16_t>(NoteKind::kProbe), 0};
    team->on_note(1, asks, std::as_bytes(std::span(&theirs, 1)));
    return team->failure().code();
  };
  EXPECT_EQ(failure_with(25, 20), IBCOLL_OK);
  for (const uint64_t other : {uint64_t{1}, uint64_t{50}}) {
    EXPECT_EQ(failure_with(other, 20), IBCOLL_ERR_MISMATCH) << other;
    EXPECT_EQ(failure_with(25, other), IBCOLL_ERR_MISMATCH) << other;
  }
}

// Another process may write what it likes.
TEST_F(EngineTest, ADamagedRecordOfACallIsNoCollective) {
  auto call = make_call(team(0), 10);
  EXPECT_TRUE(call->request->start().ok());
  std::array<std::byte, sizeof(PairBytes) + sizeof(CallRecord)> payload{};
  CallRecord record;
  record.op = 1;
  record.algorithm = 8191;
  record.type = record.operation = 255;
  std::memcpy(payload.data() + sizeof(PairBytes), &record, sizeof record);
  const Note asks{1, 0, 1, 0, 0, static_cast<uint16_t>(NoteKind::kProbe), 0};
  team(0).on_note(1, asks, std::span(payload).first(payload.size() - 1));
  EXPECT_TRUE(team(0).failure().ok());
  team(0).on_note(1, asks, payload);
  EXPECT_NE(team(0).failure().text().find("rank 1 calls a collective, but rank 0 calls allgather"), std::string::npos)
      << team(0).failure().text();
  const auto all = algorithms();
  const auto ring = std::find(all.begin(), all.end(), find_algorithm(IBCOLL_ALLREDUCE, "ring"));
  record.algorithm = static_cast<uint16_t>(ring - all.begin()) & 0x1fff;
  EXPECT_NE(call_text(record).find("of type ?, operation user-defined"), std::string::npos) << call_text(record);
}

TEST_F(ExchangeTest, WhatWasLentBeforeIsNotSent) {
  Exchange exchange(team(0), kSignature);
  start(exchange);
  static_cast<CommBackend&>(exchange).lend(memory_);
  start(exchange);
  const auto address = reinterpret_cast<uint64_t>(memory_.data());
  exchange.on_note(1, note(NoteKind::kWanted, 100), std::as_bytes(std::span(&address, 1)));
  EXPECT_EQ(team(0).failure().code(), IBCOLL_ERR_MISMATCH);
}

TEST_F(ExchangeTest, WhatIsLentAndNotThereIsNotSent) {
  void* const page = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  Exchange exchange(team(0), kSignature);
  start(exchange);
  static_cast<CommBackend&>(exchange).lend({static_cast<const std::byte*>(page), 100});
  const auto address = reinterpret_cast<uint64_t>(page);
  exchange.on_note(1, note(NoteKind::kWanted, 100), std::as_bytes(std::span(&address, 1)));
  EXPECT_EQ(team(0).failure().code(), IBCOLL_ERR_SYSTEM);
  ::munmap(page, 4096);
}

// Short messages may go to a peer that has not arrived, and more of them after the first.
TEST_F(ExchangeTest, APeerMayBeServedAgain) {
  Exchange exchange(team(0), kSignature);
  start(exchange);
  for (int message = 0; message < 3; ++message) {
    exchange.incoming().serve(1, 10, 1);
    ASSERT_TRUE(exchange.incoming().has_arrival()) << message;
    EXPECT_EQ(exchange.incoming().take_arrival(), 1);
    EXPECT_FALSE(exchange.incoming().has_arrival());
  }
}

// A peer has room for a message that no rank sends, or has sent one that no rank takes.
TEST_F(ExchangeTest, WhatIsLeftAtTheEndIsAMismatch) {
  const auto matched_after = [this](NoteKind kind, uint64_t epoch) {
    const std::unique_ptr<Team> team = make_team(0, epoch);
    Exchange exchange(*team, kSignature);
    start(exchange);
    EXPECT_TRUE(exchange.matched());
    if (kind == NoteKind::kAnnounce)
      advertise(exchange, 5000);
    else
      exchange.on_note(1, note(kind, 100), ConstBytes(memory_).first(100));
    const bool matched = exchange.matched();
    EXPECT_EQ(team->failure().ok(), matched);
    exchange.close();
    return matched;
  };
  EXPECT_FALSE(matched_after(NoteKind::kAnnounce, 5));
  EXPECT_FALSE(matched_after(NoteKind::kEager, 6));
}

TEST_F(ExchangeTest, AMismatchAmongFewerRanksNamesRanksOfTheTeam) {
  Exchange exchange(team(0), kSignature);
  start(exchange);
  const int ranks[] = {2, 0};
  exchange.comm().among(ranks).mismatch(0, 5, 6, "bytes");
  EXPECT_NE(team(0).failure().text().find("rank 0 and rank 2 do not fit"), std::string::npos)
      << team(0).failure().text();
}

// Ranks that are served as they arrive are asked when none does.
TEST_F(ExchangeTest, AWaitForArrivalsAwaitsThoseThatHaveNotCome) {
  Exchange exchange(team(0), kSignature);
  start(exchange);
  exchange.incoming().serve(1, 5000, 1);
  exchange.incoming().serve(2, 5000, 2);
  advertise(exchange, 5000);
  std::vector<int> asked;
  constexpr Wait kWait{WaitKind::kArrival};
  rule_of(kWait).awaited(
      exchange, kWait, [](void* to, int rank) { static_cast<std::vector<int>*>(to)->push_back(rank); }, &asked);
  EXPECT_EQ(asked, (std::vector<int>{2}));
}

}  // namespace
}  // namespace ibcoll
