// SPDX-License-Identifier: BSD-3-Clause
// Tests what a message of a peer is taken for: its arrival, and the message that belongs here if its size is the same.
#include "tests/unit/engine_wire.h"

namespace ibcoll {
namespace {

// One that is longer than its room would go beyond it; with one that is shorter the peer would wait for the rest.
TEST_F(ExchangeTest, RoomOfAnotherSizeIsAMismatch) {
  const auto failure_with_room = [this](uint64_t room) {
    const std::unique_ptr<Team> team = make_team(0, room);
    Exchange exchange(*team, kSignature);
    start(exchange);
    advertise(exchange, room);
    put(exchange, 5000);
    return team->failure().code();
  };
  EXPECT_EQ(failure_with_room(5000), IBCOLL_OK);
  EXPECT_EQ(failure_with_room(4999), IBCOLL_ERR_MISMATCH);
  EXPECT_EQ(failure_with_room(5001), IBCOLL_ERR_MISMATCH);
}

TEST_F(ExchangeTest, AnEagerMessageOfAnotherSizeIsAMismatch) {
  const auto failure_with = [this](uint64_t bytes) {
    const std::unique_ptr<Team> team = make_team(0, bytes);
    Exchange exchange(*team, kSignature);
    start(exchange);
    std::byte into[100] = {};
    exchange.incoming().announce(1, into, 1);
    exchange.on_note(1, note(NoteKind::kEager, bytes), ConstBytes(memory_).first(bytes));
    return team->failure().code();
  };
  EXPECT_EQ(failure_with(100), IBCOLL_OK);
  EXPECT_EQ(failure_with(99), IBCOLL_ERR_MISMATCH);
  EXPECT_EQ(failure_with(101), IBCOLL_ERR_MISMATCH);
}

// Whatever comes first from a peer says that it is there, and what waits for it need not go to its landing memory.
TEST_F(ExchangeTest, AnyMessageIsAnArrival) {
  const auto arrives_with = [this](NoteKind kind, uint64_t bytes, ConstBytes payload) {
    Exchange exchange(team(0), kSignature);
    start(exchange);
    exchange.incoming().announce(1, Bytes(memory_).first(bytes), 1);
    exchange.incoming().serve(1, 50'000, 1);
    EXPECT_FALSE(exchange.incoming().has_arrival());
    exchange.on_note(1, note(kind, bytes), payload);
    return exchange.incoming().has_arrival() && exchange.incoming().take_arrival() == 1 &&
           !exchange.incoming().serve_late();
  };
  const RemoteRegion none;
  EXPECT_TRUE(arrives_with(NoteKind::kEager, 10, ConstBytes(memory_).first(10)));
  EXPECT_TRUE(arrives_with(NoteKind::kSpill, 5000, ConstBytes(memory_).first(10)));
  EXPECT_TRUE(arrives_with(NoteKind::kAnnounce, 50'000, std::as_bytes(std::span(&none, 1))));
  EXPECT_TRUE(team(0).failure().ok()) << team(0).failure().text();
}

// Three messages, of which one may still be under way when the task goes on.
int tasks_went_on = 0;
Task send_three(Comm& c, Args args) {
  for (int i = 0; i < 3; ++i) c.put(1, ConstBytes(args.send.base, 100));
  co_await c.flushed(1);
  ++tasks_went_on;
  co_await c.flushed();
  ++tasks_went_on;
}

// The network takes messages one after the other.
TEST_F(EngineTest, ATaskGoesOnWhenEnoughOfItsMessagesHaveLeft) {
  static const Algorithm algorithm{
      .collective = IBCOLL_BCAST, .name = "three", .about = "", .run = send_three, .cost_us = nullptr};
  std::vector<std::byte> memory(100);
  Args args;
  args.collective = IBCOLL_BCAST;
  args.bytes = memory.size();
  args.send.base = args.recv.base = memory.data();
  Request request(team(0), args, Choice{&algorithm}, IBCOLL_SCHEME_AUTO, 1);
  tasks_went_on = 0;
  transports_[0]->most_messages = 0;
  ASSERT_TRUE(request.start().ok());
  for (const int went_on : {0, 1, 2}) {
    transports_[0]->most_messages = 1;
    engines_[0]->progress();
    EXPECT_EQ(tasks_went_on, went_on);
  }
  EXPECT_FALSE(request.in_flight());
}

}  // namespace
}  // namespace ibcoll
