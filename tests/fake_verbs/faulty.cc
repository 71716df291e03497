// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fake_verbs/faulty.h"

#include <algorithm>

namespace ibcoll::fake_verbs {
namespace {

constexpr size_t kLong = 30'000;  // bytes of a put that is no message

// What rank `to` has got of `from` is what was sent, from number `first` on.
void expect_numbered(World& world, int to, int from, uint32_t first) {
  uint32_t next = first;
  for (const World::Got& got : world.got(to)) {
    if (got.kind != Event::Kind::kMessage || got.peer != from) continue;
    ASSERT_EQ(got.note.op, next);
    ASSERT_EQ(first_wrong(got.payload, next), got.payload.size()) << "message " << next;
    ++next;
  }
}

}  // namespace

std::unique_ptr<World> FaultTest::make(int size, std::vector<const char*> settings) {
  auto group = make_group(size, conformance::test_seed(), std::move(settings));
  return group ? std::make_unique<World>(std::move(group)) : nullptr;
}

std::unique_ptr<World> FaultTest::make_connected(int size, std::vector<const char*> settings) {
  auto world = make(size, std::move(settings));
  if (!world || !world->send(0, 1, numbered(0), {})) return nullptr;
  const auto connected = [&] { return world->messages(1, 0) == 1 && world->counter(0, "connections") == 1; };
  if (!world->pump_until(connected)) return nullptr;
  world->got(1).clear();
  return world;
}

void FaultTest::drain(World& world) {
  for (int i = 0; i < 300; ++i) world.pump();
}

std::string FaultTest::lost(World& world, int rank, int peer) {
  for (const World::Got& got : world.got(rank))
    if (got.kind == Event::Kind::kPeerFailed && got.peer == peer)
      return {reinterpret_cast<const char*>(got.payload.data()), got.payload.size()};
  return "";
}

ibcoll_status_t FaultTest::lack(World& world, int rank, int peer) {
  Event report;
  for (const World::Got& got : world.got(rank))
    if (got.kind == Event::Kind::kPeerFailed && got.peer == peer) report.token = got.token;
  return lack_of(report);
}

void FaultTest::expect_traffic(World& world, int a, int b, uint32_t rounds) {
  const uint32_t first = next_;
  world.got(a).clear(), world.got(b).clear();
  for (uint32_t i = 0; i < rounds; ++i) {
    const uint32_t number = next_++;
    for (const auto& [from, to] : {std::pair{a, b}, {b, a}}) {
      std::vector<std::byte> bytes(i % 3 == 0 ? kLong + i : i % 3 == 1 ? 8 + i : 100 * i);
      fill(bytes, number);
      if (i % 3 == 2) {
        ASSERT_TRUE(world.send(from, to, numbered(number), bytes));
        continue;
      }
      std::vector<std::byte> memory(bytes.size());
      const RemoteRegion region = world.at(to).expose(from, memory);
      if (region.key == 0) {  // the caller takes slots then
        ASSERT_TRUE(world.send(from, to, numbered(number), {}));
        continue;
      }
      ASSERT_TRUE(world.put(from, to, region, bytes, numbered(number)));
      ASSERT_TRUE(world.pump_until([&] { return world.messages(to, from) > i; })) << "put " << number;
      EXPECT_EQ(first_wrong(memory, number), memory.size()) << "put " << number;
      world.conceal(to, from, region);
    }
  }
  ASSERT_TRUE(world.pump_until([&] { return world.messages(a, b) >= rounds && world.messages(b, a) >= rounds; }));
  drain(world);
  EXPECT_EQ(world.messages(a, b), rounds);
  EXPECT_EQ(world.messages(b, a), rounds);
  ASSERT_NO_FATAL_FAILURE(expect_numbered(world, a, b, first));
  ASSERT_NO_FATAL_FAILURE(expect_numbered(world, b, a, first));
}

void FaultTest::expect_loss(World& world, int first, const std::string& text, bool both) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < deadline &&
         (lost(world, first, 1 - first).empty() || (both && lost(world, 1 - first, first).empty()))) {
    for (const int rank : {0, 1}) {
      world.at(rank).send(1 - rank, numbered(0), {});
      world.at(rank).check_peers();
    }
    world.pump();
  }
  const std::string reported = lost(world, first, 1 - first);
  EXPECT_NE(reported, "") << "nothing is reported";
  const std::string death = "rank " + std::to_string(first) + ": verbs: lost rank " + std::to_string(1 - first) + ": ";
  expect_text(reported, lack(world, first, 1 - first) == IBCOLL_OK ? death : "verbs: ");
  expect_text(reported, text);
  EXPECT_TRUE(!both || !lost(world, 1 - first, first).empty()) << "the other side does not learn of it";
  EXPECT_FALSE(world.at(first).send(1 - first, numbered(0), {})) << "a lost peer takes no messages";
}

}  // namespace ibcoll::fake_verbs
