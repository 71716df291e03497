// SPDX-License-Identifier: BSD-3-Clause
// How far a rank may run ahead of a peer: in one collective, into its landing memory, and over all collectives.
#include <array>
#include <cstring>
#include <random>

#include "tests/unit/engine_wire.h"

namespace ibcoll {
namespace {

class CreditOfOneCollective : public ExchangeTest {
 protected:
  // Bytes that left for rank 1 in notes of this kind, and how many notes.
  uint64_t bytes_sent(NoteKind kind) {
    uint64_t bytes = 0;
    for (const Letter& letter : wire_.boxes[1])
      if (letter.note.kind == static_cast<uint16_t>(kind)) bytes += letter.payload.size();
    return bytes;
  }
  // Rank 1 does not come, and is served all the same.
  static bool serves_late(Exchange& exchange, uint64_t bytes) {
    exchange.incoming().serve(1, bytes, 1);
    return exchange.incoming().serve_late();
  }
  int64_t notes_sent(NoteKind kind) {
    return std::count(wire_.kinds.begin(), wire_.kinds.end(), static_cast<uint16_t>(kind));
  }
};

// Each message leaves one at a time, so that one too many is seen.
TEST_F(CreditOfOneCollective, EagerMessagesGoAsFarAheadAsTheLimitSays) {
  Exchange exchange(team(0), kSignature);
  start(exchange);
  for (int i = 0; i < 20; ++i) put(exchange, 10);
  EXPECT_EQ(notes_sent(NoteKind::kEager), 6);
  exchange.on_note(1, note(NoteKind::kConsumed, 1), {});
  EXPECT_EQ(notes_sent(NoteKind::kEager), 7);
  exchange.on_note(1, note(NoteKind::kConsumed, 5), {});
  EXPECT_EQ(notes_sent(NoteKind::kEager), 11);
  exchange.on_note(1, note(NoteKind::kConsumed, 11), {});
  EXPECT_EQ(notes_sent(NoteKind::kEager), 17);
  exchange.on_note(1, note(NoteKind::kConsumed, 17), {});
  EXPECT_EQ(notes_sent(NoteKind::kEager), 20);
}

// The receiver returns credit for half of them at a time, and counts what it has taken.
TEST_F(CreditOfOneCollective, HalfOfTheCreditIsReturnedAtATime) {
  Exchange exchange(team(0), kSignature);
  start(exchange);
  std::byte into[100] = {}, from[10] = {};
  for (int i = 0; i < 7; ++i) exchange.incoming().announce(1, Bytes(into).subspan(10 * static_cast<size_t>(i), 10), 1);
  std::vector<uint64_t> reported;
  for (int i = 0; i < 7; ++i) {
    exchange.on_note(1, note(NoteKind::kEager, 10), from);
    if (!wire_.boxes[1].empty()) reported.push_back(wire_.boxes[1].back().note.bytes);
    wire_.boxes[1].clear();
  }
  EXPECT_EQ(reported, (std::vector<uint64_t>{3, 6}));
}

// What a rank leaves in the landing memory of one that is away is bounded by its share of that, over all its messages.
TEST_F(CreditOfOneCollective, SpillsStayWithinTheShare) {
  Exchange exchange(team(0), kSignature);
  start(exchange);
  ASSERT_TRUE(serves_late(exchange, 100'000));
  put(exchange, 20'000);
  EXPECT_EQ(bytes_sent(NoteKind::kSpill), 20'000u);
  EXPECT_TRUE(exchange.outgoing().all_flushed());
  put(exchange, 100'000);
  EXPECT_EQ(bytes_sent(NoteKind::kSpill), 30'000u);
  advertise(exchange, 100'000);
  EXPECT_EQ(notes_sent(NoteKind::kFragment), 0) << "that is the advertisement of the message that is there";
  advertise(exchange, 100'000);
  EXPECT_EQ(bytes_sent(NoteKind::kSpill) + bytes_sent(NoteKind::kFragment), 120'000u);
  EXPECT_TRUE(exchange.outgoing().all_flushed() && exchange.matched());
}

// The peer says how many messages it has found whole; the others it advertises.
TEST_F(CreditOfOneCollective, AdvertisementsPassMessagesThatWereSpilledWhole) {
  for (const uint16_t found_whole : {0, 1, 2}) {
    SetUpAgain();
    Exchange exchange(team(0), kSignature);
    start(exchange);
    ASSERT_TRUE(serves_late(exchange, 5'000));
    for (const uint64_t bytes : {5'000, 6'000, 50'000}) put(exchange, bytes);
    EXPECT_EQ(bytes_sent(NoteKind::kSpill), 30'000u);
    for (uint16_t message = found_whole; message < 2; ++message)
      advertise(exchange, 5'000 + 1'000u * message, found_whole);
    EXPECT_EQ(notes_sent(NoteKind::kFragment), 0) << found_whole;
    advertise(exchange, 50'000, found_whole);
    EXPECT_EQ(bytes_sent(NoteKind::kFragment), 31'000u) << found_whole;
    EXPECT_TRUE(team(0).failure().ok()) << team(0).failure().text();
  }
}

// The one before it was advertised first, and counts as well.
TEST_F(CreditOfOneCollective, AdvertisementsPassAMessageThatWasSpilledAfterAnAnnouncedOne) {
  Exchange exchange(team(0), kSignature);
  start(exchange);
  ASSERT_TRUE(serves_late(exchange, 5'000));
  advertise(exchange, 5'000);
  put(exchange, 5'000);
  EXPECT_EQ(bytes_sent(NoteKind::kFragment), 5'000u);
  put(exchange, 6'000);
  EXPECT_EQ(bytes_sent(NoteKind::kSpill), 6'000u);
  advertise(exchange, 6'000);
  put(exchange, 50'000);
  advertise(exchange, 50'000);
  EXPECT_TRUE(exchange.outgoing().all_flushed());
  EXPECT_TRUE(team(0).failure().ok()) << team(0).failure().text();
}

// What lies in the landing memory of a peer counts until the peer has completed the collective.
TEST_F(CreditOfOneCollective, SpillsStayWithinTheShareOverAllCollectives) {
  const auto spilled_in = [this](uint32_t op) {
    Exchange exchange(team(0), kSignature);
    exchange.reset(op, IBCOLL_SCHEME_AUTO, false);
    EXPECT_TRUE(serves_late(exchange, 20'000));
    const uint64_t before = bytes_sent(NoteKind::kSpill);
    put(exchange, 20'000);
    return bytes_sent(NoteKind::kSpill) - before;
  };
  EXPECT_EQ(spilled_in(1), 20'000u);
  EXPECT_EQ(spilled_in(2), 10'000u);
  EXPECT_EQ(spilled_in(3), 0u);
  Note completed = note(NoteKind::kCompleted, 0);
  completed.completed = 1;
  team(0).on_note(1, completed, {});
  EXPECT_EQ(spilled_in(4), 20'000u);
}

// A share that is used by more than half brings credit back when the collective ends, long before eager messages would.
TEST_F(CreditOfOneCollective, CreditOfTheShareIsReturnedByHalf) {
  TeamCredit& credit = team(0).links().credit();
  const uint64_t half = credit.spill_share() / 2;
  ASSERT_LT(credit.spill_share(), engines_[0]->limits().bytes_ahead / 2);
  EXPECT_FALSE(credit.ended(*credit.at(1), 1, half, half));
  EXPECT_TRUE(credit.ended(*credit.at(1), 2, 0, 1));
  TeamCredit::note_left(*credit.at(1), 2);
  EXPECT_FALSE(credit.ended(*credit.at(1), 3, half, half));
  EXPECT_FALSE(credit.ended(*credit.at(2), 3, 0, half)) << "each peer has its own share";
}

// The request for credit waits for the next call to end, although a note leaves before that.
TEST_F(CreditOfOneCollective, ARequestForCreditOutlivesANoteWithoutNews) {
  TeamCredit& credit = team(0).links().credit();
  EXPECT_FALSE(credit.ended(*credit.at(1), 7, 1000, 0));
  TeamCredit::note_left(*credit.at(1), 7);
  EXPECT_FALSE(credit.wanted(1));
  TeamCredit::note_left(*credit.at(1), 7);
  EXPECT_TRUE(credit.ended(*credit.at(1), 8, 1000, 0));
}

// A message that is there in full is taken and nothing is sent for it; one of which a part is there is advertised.
TEST_F(CreditOfOneCollective, AMessageThatWasSpilledWholeIsNotAdvertised) {
  Exchange exchange(team(0), kSignature);
  start(exchange);
  std::vector<std::byte> into(9'000);
  const ConstBytes from(memory_);
  for (int fragment = 0; fragment < 3; ++fragment)
    exchange.on_note(1, note(NoteKind::kSpill, 3'000), from.first(1'000));
  for (int fragment = 0; fragment < 2; ++fragment)
    exchange.on_note(1, note(NoteKind::kSpill, 6'000), from.first(1'000));
  exchange.incoming().announce(1, Bytes(into).first(3'000), 1);
  EXPECT_TRUE(exchange.incoming().all_landed());
  EXPECT_TRUE(wire_.boxes[1].empty());
  exchange.incoming().announce(1, Bytes(into).subspan(3'000), 1);
  EXPECT_FALSE(exchange.incoming().all_landed());
  ASSERT_EQ(notes_sent(NoteKind::kAnnounce), 1);
  EXPECT_EQ(wire_.boxes[1].back().note.index, 1) << "one message was not advertised";
}

// So the peer gets credit when it asks, though no eager message has come.
TEST_F(CreditOfOneCollective, SpilledMessagesAreReportedAsTaken) {
  for (const bool spilled : {true, false}) {
    SetUpAgain();
    std::vector<std::byte> into(9'000);
    Exchange exchange(team(0), kSignature);
    start(exchange);
    exchange.incoming().announce(1, into, 1);
    for (int fragment = 0; fragment < 3; ++fragment)
      exchange.on_note(1, note(spilled ? NoteKind::kSpill : NoteKind::kFragment, 9'000),
                       ConstBytes(memory_).first(3'000));
    EXPECT_TRUE(exchange.incoming().all_landed());
    exchange.close();
    EXPECT_EQ(team(0).links().credit().wanted(1), spilled);
  }
}

// An advertisement that passes the end of the message may come when the call of the sender has ended.
TEST_F(CreditOfOneCollective, AdvertisementsOfSpilledMessagesMayComeAfterTheEnd) {
  for (const bool spills : {true, false}) {
    SetUpAgain();
    team(0).links().credit().may_send(*team(0).links().credit().at(1), kOp);
    if (spills) TeamCredit::spilled(*team(0).links().credit().at(1), kOp, 10);
    auto call = make_call(team(0), 8);
    ASSERT_TRUE(call->request->start().ok());
    ASSERT_EQ(call->request->exchange().op(), kOp);
    team(0).finish(*call->request);
    const RemoteRegion none;
    team(0).on_note(1, note(NoteKind::kAnnounce, 5'000), std::as_bytes(std::span(&none, 1)));
    EXPECT_EQ(team(0).health().good(), spills);
  }
}

// A peer that may not read asks for bytes of what this rank has lent, and gets nothing else.
TEST_F(CreditOfOneCollective, OnlyWhatWasLentIsSent) {
  std::byte lent[100] = {};
  const auto wants = [&](int64_t offset, uint64_t bytes) {
    Exchange exchange(team(0), kSignature);
    start(exchange);
    static_cast<CommBackend&>(exchange).lend(lent);
    const auto address = reinterpret_cast<uint64_t>(lent) + static_cast<uint64_t>(offset);
    wire_.boxes[1].clear();
    exchange.on_note(1, note(NoteKind::kWanted, bytes), std::as_bytes(std::span(&address, 1)));
    return bytes_sent(NoteKind::kEager);
  };
  EXPECT_EQ(wants(0, 100), 100u);
  EXPECT_EQ(wants(40, 60), 60u);
  EXPECT_TRUE(team(0).failure().ok());
  EXPECT_EQ(wants(40, 61), 0u);
  EXPECT_EQ(team(0).failure().code(), IBCOLL_ERR_MISMATCH);
}

// Ranks run ahead of each other by up to 40 calls of any size. No rank needs time to go by, in which ranks that have
// stalled ask what is wrong.
TEST_F(EngineTest, NoCreditIsHeldBackUntilARankAsks) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&random](uint32_t most) { return static_cast<uint32_t>(random() % most); };
    const size_t kCalls = 120, most = 1 + below(40);
    std::vector<size_t> bytes(kCalls, 1 + below(8192));
    if (below(2) == 0)
      for (size_t& one : bytes) one = 1 + below(8192);
    std::array<std::deque<std::unique_ptr<Call>>, kRanks> calls;
    std::array<size_t, kRanks> started{};
    const auto ends = [&](size_t rank) {
      while (!calls[rank].empty() && !calls[rank].front()->request->in_flight()) calls[rank].pop_front();
    };
    for (uint32_t idle = 0; idle < 200 && (started[0] < kCalls || started[1] < kCalls || started[2] < kCalls); ++idle) {
      const size_t rank = below(kRanks);
      for (uint32_t starts = below(20); starts-- > 0 && calls[rank].size() < most && started[rank] < kCalls; idle = 0) {
        calls[rank].push_back(make_call(team(static_cast<int>(rank)), bytes[started[rank]++]));
        ASSERT_TRUE(calls[rank].back()->request->start().ok());
      }
      for (uint32_t passes = below(10); passes-- > 0;) engines_[rank]->progress();
      ends(rank);
    }
    progress(500);
    for (size_t rank = 0; rank < kRanks; ++rank) {
      ends(rank);
      ASSERT_TRUE(started[rank] == kCalls && calls[rank].empty())
          << "seed " << seed << ": " << engines_[rank]->describe();
    }
  }
}

// A peer that is late keeps each message that is not small in memory for the longest one.
TEST(TeamCredit, MessagesThatAreNotSmallTakeMore) {
  const auto calls_ahead = [](uint64_t bytes) {
    const EngineLimits limits;
    TeamCredit credit(limits, 2);
    TeamCredit::Peer& peer = *credit.at(1);
    uint32_t op = 1;
    for (; credit.may_send(peer, op); ++op) TeamCredit::sent(peer, op, bytes);
    return op - 1;
  };
  EXPECT_EQ(calls_ahead(64), 1024u);
  EXPECT_EQ(calls_ahead(65), 128u);
  EXPECT_EQ(calls_ahead(8192), 64u);
}

// The numbers of collectives begin anew after 2^32 - 1; what a peer has completed must not look older for that.
TEST_F(EngineTest, CreditOverCollectivesSurvivesTheEndOfTheNumbers) {
  const uint32_t ahead = limits_.collectives_ahead;
  uint32_t op = 0u - 2 * ahead;
  for (int round = 0; round < 6; ++round) {
    const uint32_t first = op;
    for (uint32_t i = 0; i < ahead; ++i)
      EXPECT_TRUE(team(0).links().credit().may_send(*team(0).links().credit().at(1), op++)) << first << " + " << i;
    EXPECT_FALSE(team(0).links().credit().may_send(*team(0).links().credit().at(1), op))
        << "rank 1 has completed none of " << first << " and later";
    const Note completed{1, 0, 0, 0, op - 1, static_cast<uint16_t>(NoteKind::kCompleted), 0};
    team(0).on_note(1, completed, {});
    Note older = completed;
    older.completed = first;  // it may come late, by another way
    team(0).on_note(1, older, {});
  }
}

}  // namespace
}  // namespace ibcoll
