// SPDX-License-Identifier: BSD-3-Clause
// [C1] [C7] after a put that was refused, which may cost a transport its connection: what was exposed before can be
//      written
// as before, and nothing of what was under way is lost.
#include "tests/conformance/world.h"

namespace ibcoll::conformance {
namespace {

using ReconnectionTest = TransportTest;

void put_to_nowhere(World& world, int from, int to) {
  const std::vector<std::byte> source(100'000);
  ASSERT_TRUE(world.put(from, to, {0x1000, source.size(), 0x1'0000'0001}, source, numbered(0)));
}

TEST_P(ReconnectionTest, ExposuresOfBothSidesStay) {
  constexpr size_t kRegions = 100;
  auto world = make_world(2);
  ASSERT_TRUE(world);
  std::vector<GuardedMemory> memory[2];
  std::vector<RemoteRegion> regions[2];
  for (const int owner : {0, 1}) {
    for (size_t i = 0; i < kRegions; ++i) {
      memory[owner].emplace_back(1'000 + i);
      regions[owner].push_back(world->at(owner).expose(1 - owner, memory[owner].back().bytes()));
      if (regions[owner].back().key == 0) GTEST_SKIP() << "no puts between these ranks";
    }
  }
  for (int round = 0; round < 3; ++round) {
    put_to_nowhere(*world, round % 2, 1 - round % 2);
    for (const int owner : {0, 1}) {
      for (size_t i = round; i < kRegions; i += 9) {
        std::vector<std::byte> source(1'000 + i);
        fill(source, i + 1'000 * round);
        ASSERT_TRUE(world->put(1 - owner, owner, regions[owner][i], source, numbered(static_cast<uint32_t>(i))));
        ASSERT_TRUE(world->pump_until([&] { return !world->got(owner).empty(); }));
        EXPECT_EQ(world->got(owner).front().note.op, i);
        world->got(owner).clear();
        ASSERT_EQ(first_wrong(memory[owner][i].bytes(), i + 1'000 * round), source.size()) << "region " << i;
        EXPECT_TRUE(memory[owner][i].guards_intact());
      }
    }
  }
  for (const int owner : {0, 1})
    for (const RemoteRegion& region : regions[owner]) world->at(owner).conceal(1 - owner, region);
}

// Both sides send while puts are refused on both.
TEST_P(ReconnectionTest, MessagesUnderWayArriveOnceAndInOrder) {
  constexpr uint32_t kMessages = 400;
  auto world = make_world(2);
  ASSERT_TRUE(world);
  for (uint32_t i = 1; i <= kMessages; ++i) {
    for (const int from : {0, 1}) {
      std::vector<std::byte> payload(uniform(0, 4'000));
      fill(payload, i);
      ASSERT_TRUE(world->send(from, 1 - from, numbered(i), payload));
      if (i % 100 == 50 + static_cast<uint32_t>(from)) put_to_nowhere(*world, from, 1 - from);
    }
  }
  ASSERT_TRUE(
      world->pump_until([&] { return world->messages(0, 1) >= kMessages && world->messages(1, 0) >= kMessages; }));
  world->pump_for(std::chrono::milliseconds(5));
  for (const int rank : {0, 1}) {
    uint32_t next = 1;
    for (const World::Got& got : world->got(rank)) {
      if (got.kind != Event::Kind::kMessage) continue;
      ASSERT_EQ(got.note.op, next);
      ASSERT_EQ(first_wrong(got.payload, next++), got.payload.size());
    }
    EXPECT_EQ(next, kMessages + 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, ReconnectionTest, ::testing::ValuesIn(makers()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ibcoll::conformance
