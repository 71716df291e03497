// SPDX-License-Identifier: BSD-3-Clause
// [C10]: connections are made on first use, and only to peers talked to.
#include <thread>

#include "runtime/base/json.h"
#include "tests/conformance/world.h"

namespace ibcoll::conformance {
namespace {

using ConnectionTest = TransportTest;

int64_t connections(World& world, int rank) { return world.counter(rank, "connections"); }

TEST_P(ConnectionTest, OnlyToPeersTalkedTo) {
  auto world = make_world(6);
  ASSERT_TRUE(world);
  world->pump_for(std::chrono::milliseconds(10));
  for (int rank = 0; rank < 6; ++rank) EXPECT_EQ(connections(*world, rank), 0);
  ASSERT_TRUE(world->send(0, 1, Note{}, {}));
  ASSERT_TRUE(world->send(2, 1, Note{}, {}));
  ASSERT_TRUE(world->pump_until([&] { return world->got(1).size() == 2; }));
  world->pump_for(std::chrono::milliseconds(10));
  EXPECT_EQ(connections(*world, 0), 1);
  EXPECT_LE(connections(*world, 1), 2);
  EXPECT_EQ(connections(*world, 2), 1);
  for (int rank = 3; rank < 6; ++rank) EXPECT_EQ(connections(*world, rank), 0) << "rank " << rank;
}

TEST_P(ConnectionTest, BothSidesMayBegin) {
  auto world = make_world(5);
  ASSERT_TRUE(world);
  for (int from = 0; from < 5; ++from) {
    for (int to = 0; to < 5; ++to) {
      if (from == to) continue;
      ASSERT_TRUE(world->send(from, to, Note{}, {}));
    }
  }
  EXPECT_TRUE(world->pump_until([&] {
    for (int rank = 0; rank < 5; ++rank) {
      if (world->got(rank).size() < 4) return false;
    }
    return true;
  }));
  for (int rank = 0; rank < 5; ++rank) EXPECT_EQ(connections(*world, rank), 4);
}

TEST_P(ConnectionTest, AnotherJobIsNotHeard) {
  std::unique_ptr<Group> group = GetParam().make(2, seed());
  ASSERT_TRUE(group);
  std::unique_ptr<Transport> stranger = group->make_stranger();
  const bool meets_strangers = GetParam().name.starts_with("ucx") || GetParam().name.starts_with("verbs");
  ASSERT_EQ(stranger != nullptr, meets_strangers);
  if (!stranger) GTEST_SKIP() << "ranks of two jobs never meet there";
  auto world = std::make_unique<World>(std::move(group));
  std::vector<Event> events(16);
  bool sent = false;
  const auto until = [&](auto over, std::chrono::milliseconds time) {
    for (const auto end = std::chrono::steady_clock::now() + time; !over() && std::chrono::steady_clock::now() < end;) {
      sent = sent || stranger->send(1, numbered(7), {});
      stranger->poll(events);
      world->pump();
    }
  };
  until([&] { return sent; }, std::chrono::seconds(60));
  EXPECT_TRUE(sent);
  until([] { return false; }, std::chrono::milliseconds(200));  // in which it would arrive
  EXPECT_TRUE(world->got(1).empty());
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(connections(*world, rank), 0) << "rank " << rank;
  // The rank whose number it has is.
  ASSERT_TRUE(world->send(0, 1, numbered(8), {}));
  ASSERT_TRUE(world->pump_until([&] { return !world->got(1).empty(); }));
  EXPECT_EQ(world->got(1).front().note.op, 8u);
  std::thread end([&] { stranger.reset(); });
  world.reset();
  end.join();
}

TEST_P(ConnectionTest, NamesItself) {
  auto world = make_world(2);
  ASSERT_TRUE(world);
  EXPECT_EQ(world->at(0).describe().text("name"), world->at(0).name());
  EXPECT_GT(world->at(0).model().alpha_us, 0);
  EXPECT_GT(world->at(0).model().beta_us_per_byte, 0);
  const Time before = world->at(0).now();
  world->pump_for(std::chrono::milliseconds(2));
  EXPECT_GE(world->at(0).now(), before);
}

INSTANTIATE_TEST_SUITE_P(Transports, ConnectionTest, ::testing::ValuesIn(makers()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ibcoll::conformance
