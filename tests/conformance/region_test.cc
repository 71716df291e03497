// SPDX-License-Identifier: BSD-3-Clause
// [C2] [C5] [C7] [C8] [C11]: puts write what they may and nothing else.
#include <sys/mman.h>

#include <algorithm>

#include "runtime/base/json.h"
#include "tests/conformance/world.h"

namespace ibcoll::conformance {
namespace {

using RegionTest = TransportTest;

TEST_P(RegionTest, EverySizeAndAlignment) {
  auto world = make_world(2);
  ASSERT_TRUE(world);
  std::vector<size_t> sizes{0,      1,      7,       8,       63,        65,        1000,     2049,
                            4095,   4097,   8191,    8193,    16'383,    60'001,    65'280,   65'281,
                            65'535, 65'537, 131'072, 262'145, 1'000'003, 4'194'304, 8'388'607};
  uint32_t number = 0;
  for (const size_t bytes : sizes) {
    const size_t room = bytes + uniform(0, 100);
    GuardedMemory memory(room, uniform(0, 63));
    const RemoteRegion region = world->at(1).expose(0, memory.bytes());
    if (region.key == 0) GTEST_SKIP() << "no puts between these ranks";
    EXPECT_EQ(region.bytes, room);
    std::vector<std::byte> source(bytes + 64);
    const std::span<std::byte> from = std::span(source).subspan(uniform(0, 63), bytes);
    fill(from, bytes);
    ASSERT_TRUE(world->put(0, 1, region, from, numbered(number)));
    fill(from, ~bytes);  // [C5]: done, or kSent was there
    ASSERT_TRUE(world->pump_until([&] { return !world->got(1).empty(); })) << bytes << " bytes";
    const World::Got got = world->got(1).front();
    world->got(1).clear();
    EXPECT_EQ(got.kind, Event::Kind::kMessage);
    EXPECT_EQ(got.note.op, number++);
    EXPECT_TRUE(got.payload.empty());
    ASSERT_EQ(first_wrong(memory.bytes().first(bytes), bytes), bytes);
    EXPECT_TRUE(memory.guards_intact()) << bytes << " bytes";
    EXPECT_TRUE(memory.untouched_from(bytes));
    world->at(1).conceal(0, region);
  }
}

TEST_P(RegionTest, EachPutHasOneSentOrIsDone) {
  auto world = make_world(2);
  ASSERT_TRUE(world);
  GuardedMemory memory(500'000);
  const RemoteRegion region = world->at(1).expose(0, memory.bytes());
  if (region.key == 0) GTEST_SKIP() << "no puts between these ranks";
  std::vector<std::byte> source(memory.bytes().size());
  fill(source, 1);
  std::set<uint64_t> pending;
  for (uint64_t i = 0; i < 200; ++i) {
    const uint64_t token = random()();
    PutResult result = PutResult::kBusy;
    ASSERT_TRUE(world->pump_until([&] {
      result = world->at(0).put(1, region, std::span(source).first(uniform(0, source.size())), numbered(0), token);
      return result != PutResult::kBusy;
    }));
    if (result == PutResult::kPending) pending.insert(token);
  }
  EXPECT_TRUE(
      world->pump_until([&] { return world->messages(1, 0) == 200 && world->got(0).size() >= pending.size(); }));
  world->pump_for(std::chrono::milliseconds(20));
  for (const World::Got& got : world->got(0)) {
    EXPECT_EQ(got.kind, Event::Kind::kSent);
    EXPECT_EQ(got.peer, 1);
    EXPECT_EQ(pending.erase(got.token), 1u) << "a token that is not pending";
  }
  EXPECT_TRUE(pending.empty());
  world->at(1).conceal(0, region);
}

// [C11]: parts of many sizes fill a region, one after the other; each note means that its part has arrived.
TEST_P(RegionTest, PartsAtTheirOffsets) {
  auto world = make_world(2);
  ASSERT_TRUE(world);
  GuardedMemory memory(1'500'000, uniform(0, 63));
  const RemoteRegion region = world->at(1).expose(0, memory.bytes());
  if (region.key == 0) GTEST_SKIP() << "no puts between these ranks";
  std::vector<std::byte> source(memory.bytes().size());
  fill(source, 9);
  uint32_t number = 0;
  for (size_t at = 0; at < source.size(); ++number) {
    const size_t most = uniform(0, 1) == 0 ? 5'000 : 200'000;
    const size_t bytes = std::min(uniform(1, most), source.size() - at);
    const RemoteRegion rest{region.address + at, region.bytes - at, region.key};
    ASSERT_TRUE(world->put(0, 1, rest, std::span(source).subspan(at, bytes), numbered(number)));
    ASSERT_TRUE(world->pump_until([&] { return !world->got(1).empty(); })) << "part at " << at;
    EXPECT_EQ(world->got(1).front().note.op, number);
    world->got(1).clear();
    at += bytes;
    ASSERT_EQ(first_wrong(memory.bytes().first(at), 9), at);
    ASSERT_TRUE(memory.untouched_from(at));
  }
  EXPECT_TRUE(memory.guards_intact());
  world->conceal(1, 0, region);
}

// Regions that are exposed to one peer at a time keep out of each other's way, in whatever order they are written.
TEST_P(RegionTest, SeveralAtATime) {
  auto world = make_world(2);
  ASSERT_TRUE(world);
  constexpr size_t kRegions = 4, kBytes = 10'000;
  GuardedMemory memory(kRegions * kBytes);
  const auto part = [&](size_t i) { return memory.bytes().subspan(i * kBytes, kBytes); };
  std::vector<RemoteRegion> regions;
  for (size_t i = 0; i < kRegions; ++i) regions.push_back(world->at(1).expose(0, part(i)));
  if (regions.front().key == 0) GTEST_SKIP() << "no puts between these ranks";
  std::vector<std::byte> source(kBytes);
  for (const size_t i : {1, 3, 0, 2}) {
    fill(source, i);
    ASSERT_TRUE(world->put(0, 1, regions[i], source, numbered(static_cast<uint32_t>(i))));
  }
  EXPECT_TRUE(world->pump_until([&] { return world->messages(1, 0) == kRegions; })) << "a put was dropped";
  for (size_t i = 0; i < kRegions; ++i) EXPECT_EQ(first_wrong(part(i), i), kBytes) << i;
  EXPECT_TRUE(memory.guards_intact());
  for (const RemoteRegion& region : regions) world->conceal(1, 0, region);
}

// Puts that must be dropped, of several sizes: afterwards the memory is as it was, and messages still arrive.
class DroppedPut : public RegionTest {
 protected:
  // Where transports tell of it, both sides do.
  static bool reports(World& world, int from, int64_t times) {
    if (!world.at(from).describe().contains("puts_refused")) return true;
    return world.counter(from, "puts_refused") >= times && world.counter(1, "puts_dropped") >= times;
  }
  void expect_dropped(World& world, int from, const RemoteRegion& region, GuardedMemory& memory) {
    for (const size_t bytes : {size_t{1}, size_t{5'000}, size_t{20'000}, size_t{200'000}, size_t{1'000'000}}) {
      std::vector<std::byte> source(bytes, std::byte{0x11});
      ASSERT_TRUE(world.put(from, 1, region, source, numbered(1))) << bytes;
      ASSERT_TRUE(world.send(from, 1, numbered(2), {}));
      ASSERT_TRUE(world.pump_until([&] { return world.messages(1, from) >= 1; })) << "the traffic has stopped";
      world.pump_for(std::chrono::milliseconds(5));
      ASSERT_EQ(world.messages(1, from), 1u) << "the note of a dropped put came";
      EXPECT_EQ(world.got(1).front().note.op, 2u);
      world.got(1).clear();
      ASSERT_TRUE(memory.untouched()) << bytes << " bytes";
      EXPECT_TRUE(world.pump_until([&] { return reports(world, from, dropped_ + 1); })) << bytes << " bytes";
      ++dropped_;
    }
  }

 private:
  int64_t dropped_ = 0;
};

TEST_P(DroppedPut, Concealed) {
  auto world = make_world(2);
  ASSERT_TRUE(world);
  GuardedMemory memory(1'000'000);
  const RemoteRegion region = world->at(1).expose(0, memory.bytes());
  if (region.key == 0) GTEST_SKIP() << "no puts between these ranks";
  world->at(1).conceal(0, region);
  expect_dropped(*world, 0, region, memory);
  world->at(1).conceal(0, region);  // once more: no harm
}

// A new exposure may get the entry of the old one in the transport's table; the old key must not fit it.
TEST_P(DroppedPut, ConcealedAndAnotherExposed) {
  auto world = make_world(2);
  ASSERT_TRUE(world);
  GuardedMemory memory(1'000'000);
  const RemoteRegion old = world->at(1).expose(0, memory.bytes());
  if (old.key == 0) GTEST_SKIP() << "no puts between these ranks";
  world->at(1).conceal(0, old);
  const RemoteRegion fresh = world->at(1).expose(0, memory.bytes());
  if (fresh.key == 0) GTEST_SKIP() << "no puts between these ranks";
  EXPECT_NE(fresh.key, old.key);
  expect_dropped(*world, 0, old, memory);
  world->at(1).conceal(0, fresh);
}

TEST_P(DroppedPut, NeverExposed) {
  auto world = make_world(2);
  ASSERT_TRUE(world);
  GuardedMemory memory(1'000'000);
  const auto address = reinterpret_cast<uint64_t>(memory.bytes().data());
  for (const uint64_t key : {uint64_t{1}, uint64_t{0x1'0000'0001}, random()() | 1, ~uint64_t{0}}) {
    expect_dropped(*world, 0, {address, memory.bytes().size(), key}, memory);
  }
}

TEST_P(DroppedPut, ExposedToAnother) {
  auto world = make_world(3);
  ASSERT_TRUE(world);
  if (world->at(1).describe().text("exact_ranges") == "a memory region each")
    GTEST_SKIP() << "a device without memory windows does not tell its peers apart";
  GuardedMemory memory(1'000'000);
  const RemoteRegion region = world->at(1).expose(2, memory.bytes());
  if (region.key == 0) GTEST_SKIP() << "no puts between these ranks";
  expect_dropped(*world, 0, region, memory);
  world->at(1).conceal(2, region);
}

// The sender believes the region to be larger than it is, or to lie elsewhere.
TEST_P(DroppedPut, TooSmallOrElsewhere) {
  auto world = make_world(2);
  ASSERT_TRUE(world);
  GuardedMemory memory(1'000'000);
  const RemoteRegion region = world->at(1).expose(0, memory.bytes().subspan(1'000, 1'000));
  if (region.key == 0) GTEST_SKIP() << "no puts between these ranks";
  RemoteRegion lie = region;
  lie.bytes = 100'000;
  std::vector<std::byte> source(1'001, std::byte{0x11});
  ASSERT_TRUE(world->put(0, 1, lie, source, numbered(1)));
  source.resize(100'000, std::byte{0x11});
  ASSERT_TRUE(world->put(0, 1, lie, source, numbered(1)));
  lie = region;
  lie.address -= 500;
  ASSERT_TRUE(world->put(0, 1, lie, std::span(source).first(600), numbered(1)));
  lie.address = region.address + 500;
  ASSERT_TRUE(world->put(0, 1, lie, std::span(source).first(600), numbered(1)));
  lie.address = region.address + 1'000'000'000'000;
  ASSERT_TRUE(world->put(0, 1, lie, std::span(source).first(600), numbered(1)));
  ASSERT_TRUE(world->send(0, 1, numbered(2), {}));
  ASSERT_TRUE(world->pump_until([&] { return world->messages(1, 0) >= 1; }));
  EXPECT_EQ(world->messages(1, 0), 1u);
  EXPECT_EQ(world->got(1).front().note.op, 2u);
  EXPECT_TRUE(memory.untouched());
  world->at(1).conceal(0, region);
}

// [C7] in the middle of traffic: from the return of conceal() on nothing changes, whatever is under way.
TEST_P(RegionTest, NoWriteAfterConceal) {
  auto world = make_world(2);
  ASSERT_TRUE(world);
  for (int round = 0; round < 12; ++round) {
    GuardedMemory memory(uniform(1, 1'500'000));
    const RemoteRegion region = world->at(1).expose(0, memory.bytes());
    if (region.key == 0) GTEST_SKIP() << "no puts between these ranks";
    std::vector<std::vector<std::byte>> sources(20, std::vector<std::byte>(memory.bytes().size()));
    for (size_t i = 0; i < sources.size(); ++i) fill(sources[i], i);
    size_t accepted = 0, pending = 0, steps = uniform(0, 40);
    for (size_t step = 0; step < steps && accepted < sources.size(); ++step) {
      const PutResult result = world->at(0).put(1, region, sources[accepted], numbered(1), accepted);
      accepted += result != PutResult::kBusy;
      pending += result == PutResult::kPending;
      if (uniform(0, 1) == 0) world->pump();
    }
    world->conceal(1, 0, region);
    const std::vector<std::byte> snapshot(memory.bytes().begin(), memory.bytes().end());
    ASSERT_TRUE(world->send(0, 1, numbered(2), {}));
    ASSERT_TRUE(world->pump_until([&] {
      const auto& got = world->got(1);
      return world->got(0).size() == pending && !got.empty() && got.back().note.op == 2;
    })) << "round "
        << round << ": " << world->got(0).size() << " of " << pending << " kSent";
    ASSERT_TRUE(std::equal(snapshot.begin(), snapshot.end(), memory.bytes().begin())) << "round " << round;
    ASSERT_TRUE(memory.guards_intact());
    world->got(0).clear();
    world->got(1).clear();
  }
}

// The same without the help of the peer, which does not poll meanwhile: a transport may then give up the peer, but not
// the promise.
TEST_P(RegionTest, ConcealEndsWithoutThePeer) {
  auto world = make_world(2);
  ASSERT_TRUE(world);
  ASSERT_TRUE(world->send(0, 1, numbered(1), {}));
  ASSERT_TRUE(world->pump_until([&] { return world->messages(1, 0) == 1; }));
  GuardedMemory memory(3'000'000);
  const RemoteRegion region = world->at(1).expose(0, memory.bytes());
  if (region.key == 0) GTEST_SKIP() << "no puts between these ranks";
  std::vector<std::byte> source(memory.bytes().size());
  fill(source, 1);
  world->pump_until([&] { return world->at(0).put(1, region, source, numbered(2), 1) != PutResult::kBusy; });
  world->put_to_sleep(0);
  world->pump_for(std::chrono::milliseconds(20));
  const auto begin = std::chrono::steady_clock::now();
  const bool at_once = world->at(1).conceal(0, region);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20)) << "[C4] nothing blocks for long";
  if (!at_once) world->conceal(1, 0, region);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60)) << "the peer never answers";
  const std::vector<std::byte> snapshot(memory.bytes().begin(), memory.bytes().end());
  world->wake_up(0);
  world->pump_for(std::chrono::milliseconds(200));
  EXPECT_TRUE(std::equal(snapshot.begin(), snapshot.end(), memory.bytes().begin()));
  EXPECT_TRUE(memory.guards_intact());
}

// While conceal() waits for a put that lands, another one that comes is dropped.
TEST_P(RegionTest, NoPutBeginsWhileConcealWaits) {
  constexpr size_t kLong = 2'000'000, kShort = 100;
  GuardedMemory memory(kLong + kShort);
  const std::vector<std::byte> source(kLong, std::byte{0x11});  // is read until the world ends
  auto world = make_world(2);
  ASSERT_TRUE(world);
  ASSERT_TRUE(world->send(0, 1, numbered(1), {}));
  ASSERT_TRUE(world->pump_until([&] { return world->messages(1, 0) == 1; }));
  const RemoteRegion region = world->at(1).expose(0, memory.bytes());
  if (region.key == 0) GTEST_SKIP() << "no puts between these ranks";
  const auto put = [&](const RemoteRegion& to, size_t bytes) {
    return world->at(0).put(1, to, std::span(source).first(bytes), numbered(2), bytes) != PutResult::kBusy;
  };
  ASSERT_TRUE(world->pump_until([&] { return put(region, kLong); }));
  world->put_to_sleep(0);  // it only says that it has a put
  for (int i = 0; i < 200; ++i) world->pump();
  if (world->at(1).conceal(0, region)) GTEST_SKIP() << "the put is over, or comes in fragments";
  const RemoteRegion rest{region.address + kLong, kShort, region.key};
  EXPECT_TRUE(world->pump_until([&] { return put(rest, kShort); }));
  for (int i = 0; i < 200; ++i) world->pump();
  world->wake_up(0);
  world->conceal(1, 0, region);
  EXPECT_TRUE(memory.untouched_from(kLong));
}

// The right to write is withdrawn after the large puts that go the other way, which costs time but no connection.
TEST_P(RegionTest, ConcealBehindLargePuts) {
  auto world = make_world(2);
  ASSERT_TRUE(world);
  if (world->at(1).describe().text("exact_ranges").find("windows") == std::string::npos)
    GTEST_SKIP() << "nothing is taken back in the order of puts";
  GuardedMemory memory(1'000);
  std::vector<std::byte> source(60'000'000), target(source.size());
  const RemoteRegion region = world->at(1).expose(0, memory.bytes());
  const RemoteRegion far = world->at(0).expose(1, target);
  ASSERT_TRUE(world->send(1, 0, numbered(1), {}));
  ASSERT_TRUE(world->pump_until([&] { return world->messages(0, 1) == 1; }));
  ASSERT_EQ(world->at(1).put(0, far, source, numbered(2), 1), PutResult::kPending);
  world->at(1).conceal(0, region);
  EXPECT_EQ(world->at(1).describe().text("reconnections"), "0");
  ASSERT_TRUE(world->pump_until([&] { return world->messages(0, 1) == 2 && !world->got(1).empty(); }));
  world->at(0).conceal(1, far);
}

// Devices bind no window to more than 2 GB, and the failure of a bind would cost the connection.
TEST_P(RegionTest, LongerThanAWindowMayBe) {
  auto world = make_world(2);
  ASSERT_TRUE(world);
  if (world->at(1).describe().text("exact_ranges").find("windows") == std::string::npos)
    GTEST_SKIP() << "there are no windows";
  constexpr size_t kBytes = (size_t{1} << 31) + 1;
  void* const memory =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  EXPECT_EQ(world->at(1).expose(0, {static_cast<std::byte*>(memory), kBytes}).key, 0u);
  ::munmap(memory, kBytes);
}

INSTANTIATE_TEST_SUITE_P(Transports, RegionTest, ::testing::ValuesIn(makers()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Transports, DroppedPut, ::testing::ValuesIn(makers()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ibcoll::conformance
