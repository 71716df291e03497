// SPDX-License-Identifier: BSD-3-Clause
// [C5] [C6] [C8]: which side owns which bytes until when.
#include <algorithm>
#include <cstring>

#include "tests/conformance/world.h"

namespace ibcoll::conformance {
namespace {

using PayloadTest = TransportTest;

TEST_P(PayloadTest, SlotsAreLargeEnough) {
  auto world = make_world(2);
  ASSERT_TRUE(world);
  EXPECT_GE(world->at(0).slot_bytes(), 4096u);
}

TEST_P(PayloadTest, EverySizeUpToASlot) {
  auto world = make_world(2);
  ASSERT_TRUE(world);
  const size_t slot = world->at(0).slot_bytes();
  std::vector<size_t> sizes{0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 63, 64, 65, slot / 2 - 1, slot / 2 + 1, slot - 1, slot};
  for (size_t power = 128; power < slot; power *= 2) sizes.insert(sizes.end(), {power - 1, power, power + 1});
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::vector<std::byte> payload(sizes[i]);
    fill(payload, i);
    Note note;
    note.op = static_cast<uint32_t>(i);
    ASSERT_TRUE(world->send(0, 1, note, payload));
    std::fill(payload.begin(), payload.end(), std::byte{0xFF});  // [C5]
  }
  ASSERT_TRUE(world->pump_until([&] { return world->messages(1, 0) == sizes.size(); }));
  for (size_t i = 0; i < sizes.size(); ++i) {
    const World::Got& got = world->got(1)[i];
    ASSERT_EQ(got.note.op, i);
    ASSERT_EQ(got.payload.size(), sizes[i]);
    ASSERT_EQ(first_wrong(got.payload, i), sizes[i]);
  }
}

// All 32 bytes of a note travel.
TEST_P(PayloadTest, NotesArriveAsTheyAre) {
  auto world = make_world(2);
  ASSERT_TRUE(world);
  std::vector<Note> sent(64);
  for (Note& note : sent) {
    note.epoch = random()();
    note.bytes = random()();
    note.op = static_cast<uint32_t>(random()());
    note.signature = static_cast<uint32_t>(random()());
    note.completed = static_cast<uint32_t>(random()());
    note.kind = static_cast<uint16_t>(random()());
    note.index = static_cast<uint16_t>(random()());
    ASSERT_TRUE(world->send(1, 0, note, {}));
  }
  ASSERT_TRUE(world->pump_until([&] { return world->messages(0, 1) == sent.size(); }));
  for (size_t i = 0; i < sent.size(); ++i) {
    EXPECT_EQ(std::memcmp(&world->got(0)[i].note, &sent[i], sizeof(Note)), 0);
    EXPECT_TRUE(world->got(0)[i].payload.empty());
  }
}

// Payloads of one poll stay as they are while the same transport sends and exposes, and while its peers send on and
// are polled, until the next poll of the same transport.
TEST_P(PayloadTest, PayloadStaysUntilTheNextPoll) {
  auto world = make_world(3);
  ASSERT_TRUE(world);
  std::vector<std::byte> payload(std::min<size_t>(4000, world->at(0).slot_bytes()));
  uint32_t sent[3] = {};
  const auto send_more = [&](int from) {
    fill(payload, static_cast<uint64_t>(from) << 32 | sent[from]);
    Note note;
    note.op = sent[from];
    if (world->at(from).send(0, note, payload)) ++sent[from];
  };
  world->put_to_sleep(0);
  GuardedMemory memory(1000);
  uint32_t received = 0;
  const bool done = world->pump_until([&] {
    std::array<Event, 8> events;
    const size_t count = world->at(0).poll(events);
    received += static_cast<uint32_t>(count);
    for (int round = 0; round < 30; ++round) {
      send_more(1 + round % 2);
      world->pump();
    }
    if (count > 0) {
      world->at(0).send(1, Note{}, payload);
      world->at(0).conceal(1, world->at(0).expose(1, memory.bytes()));
      world->at(0).check_peers();
    }
    for (size_t i = 0; i < count; ++i) {
      const uint64_t id = static_cast<uint64_t>(events[i].peer) << 32 | events[i].note.op;
      EXPECT_EQ(first_wrong(events[i].payload, id), payload.size()) << "overwritten before the next poll";
    }
    return received > 500 || HasFailure();
  });
  EXPECT_TRUE(done);
}

TEST_P(PayloadTest, EventsBeyondTheSpanComeLater) {
  auto world = make_world(2);
  ASSERT_TRUE(world);
  world->put_to_sleep(1);
  for (uint32_t i = 0; i < 6; ++i) {
    Note note;
    note.op = i;
    ASSERT_TRUE(world->send(0, 1, note, {}));
  }
  uint32_t next = 0;
  EXPECT_TRUE(world->pump_until([&] {
    Event one;
    const size_t count = world->at(1).poll({&one, 1});
    EXPECT_LE(count, 1u);
    if (count == 1) {
      EXPECT_EQ(one.note.op, next++);
    }
    return next == 6;
  }));
  EXPECT_EQ(world->at(1).poll({}), 0u);
}

INSTANTIATE_TEST_SUITE_P(Transports, PayloadTest, ::testing::ValuesIn(makers()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ibcoll::conformance
