// SPDX-License-Identifier: BSD-3-Clause
// [C4]: nothing blocks; a rank that does not poll stops only the traffic to itself; what is refused leaves no trace.
#include "tests/conformance/world.h"

namespace ibcoll::conformance {
namespace {

using Clock = std::chrono::steady_clock;
using CreditTest = TransportTest;

// No transport may take this much for a peer that does not poll.
constexpr size_t kMostMessages = 200'000;
constexpr size_t kMostBytes = 256u << 20;
constexpr uint32_t kMostPuts = 5'000;
// Refused this many times in a row, with polls and pauses in between: the credit is used up.
constexpr int kRefusals = 300;

// Sends until `to`, which sleeps, can take no more; how many were accepted.
uint32_t exhaust(World& world, int from, int to, size_t bytes) {
  uint32_t accepted = 0;
  std::vector<std::byte> payload(bytes);
  for (int refused = 0; refused < kRefusals;) {
    fill(payload, accepted);
    const auto begin = Clock::now();
    const bool ok = world.at(from).send(to, numbered(accepted, bytes), payload);
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(20)) << "send() blocks; its peer never wakes up";
    if (ok) {
      ++accepted;
      refused = 0;
      if (accepted > kMostMessages || accepted * bytes > kMostBytes) {
        ADD_FAILURE() << accepted << " messages accepted for a peer that never polls";
        break;
      }
    } else {
      ++refused;
      world.pump();
    }
  }
  return accepted;
}

void expect_all(World& world, int at, int from, uint32_t count, size_t bytes) {
  EXPECT_TRUE(world.pump_until([&] { return world.messages(at, from) >= count; }));
  world.pump_for(std::chrono::milliseconds(20));
  ASSERT_EQ(world.messages(at, from), count);
  uint32_t next = 0;
  for (const World::Got& got : world.got(at)) {
    if (got.peer != from) continue;
    ASSERT_EQ(got.note.op, next);
    ASSERT_EQ(got.payload.size(), bytes);
    ASSERT_EQ(first_wrong(got.payload, next), bytes);
    ++next;
  }
}

TEST_P(CreditTest, SleeperGetsAllThatWasAcceptedAndNothingElse) {
  auto world = make_world(2);
  ASSERT_TRUE(world);
  for (const size_t bytes : {size_t{0}, size_t{100}, world->at(0).slot_bytes()}) {
    world->got(1).clear();
    world->put_to_sleep(1);
    const uint32_t accepted = exhaust(*world, 0, 1, bytes);
    EXPECT_GT(accepted, 0u);
    world->wake_up(1);
    expect_all(*world, 1, 0, accepted, bytes);
    // The credit comes back.
    world->got(1).clear();
    ASSERT_TRUE(world->send(0, 1, numbered(0, 0), {}));
    expect_all(*world, 1, 0, 1, 0);
  }
}

TEST_P(CreditTest, SleepersDoNotStopOthers) {
  auto world = make_world(4);
  ASSERT_TRUE(world);
  world->put_to_sleep(2);
  world->put_to_sleep(3);
  const size_t bytes = world->at(0).slot_bytes();
  const uint32_t to_two = exhaust(*world, 0, 2, bytes);
  const uint32_t to_three = exhaust(*world, 0, 3, bytes);
  std::vector<std::byte> payload(bytes);
  for (uint32_t i = 0; i < 300; ++i) {
    fill(payload, i);
    ASSERT_TRUE(world->send(0, 1, numbered(i, bytes), payload)) << "stopped at message " << i;
    ASSERT_TRUE(world->send(1, 0, numbered(i, bytes), payload));
  }
  expect_all(*world, 1, 0, 300, bytes);
  expect_all(*world, 0, 1, 300, bytes);
  world->wake_up(2);
  world->wake_up(3);
  expect_all(*world, 2, 0, to_two, bytes);
  expect_all(*world, 3, 0, to_three, bytes);
}

TEST_P(CreditTest, PutsToASleeperAreRefusedInTheEnd) {
  auto world = make_world(3);
  ASSERT_TRUE(world);
  GuardedMemory memory(300'000);
  const RemoteRegion region = world->at(1).expose(0, memory.bytes());
  if (region.key == 0) GTEST_SKIP() << "no puts between these ranks";
  ASSERT_TRUE(world->send(0, 1, numbered(9999, 0), {}));  // connected
  ASSERT_TRUE(world->pump_until([&] { return world->messages(1, 0) == 1; }));
  world->got(1).clear();
  world->put_to_sleep(1);
  std::vector<std::byte> source(memory.bytes().size());
  fill(source, 5);
  uint32_t accepted = 0;
  std::set<uint64_t> pending;
  for (int refused = 0; refused < kRefusals && accepted <= kMostPuts;) {
    const PutResult result = world->at(0).put(1, region, source, numbered(accepted, source.size()), accepted);
    if (result == PutResult::kBusy) {
      ++refused;
      world->pump();
      continue;
    }
    refused = 0;
    if (result == PutResult::kPending) pending.insert(accepted);
    ++accepted;
  }
  EXPECT_GT(accepted, 0u);
  EXPECT_LE(accepted, kMostPuts) << "puts accepted for a peer that never polls";
  ASSERT_TRUE(world->send(0, 2, numbered(1, 0), {}));
  ASSERT_TRUE(world->pump_until([&] { return world->messages(2, 0) == 1; }));
  world->wake_up(1);
  EXPECT_TRUE(world->pump_until([&] { return world->messages(1, 0) >= accepted; }));
  EXPECT_TRUE(world->pump_until([&] { return world->got(0).size() >= pending.size(); }));
  for (const World::Got& got : world->got(0)) {
    ASSERT_EQ(got.kind, Event::Kind::kSent);
    EXPECT_EQ(pending.erase(got.token), 1u);
  }
  EXPECT_TRUE(pending.empty());
  EXPECT_EQ(first_wrong(memory.bytes(), 5), memory.bytes().size());
  EXPECT_TRUE(memory.guards_intact());
  world->at(1).conceal(0, region);
}

INSTANTIATE_TEST_SUITE_P(Transports, CreditTest, ::testing::ValuesIn(makers()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ibcoll::conformance
