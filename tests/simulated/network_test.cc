// SPDX-License-Identifier: BSD-3-Clause
// The simulated network itself: what the conformance suite cannot see, such as times and replay.
#include "runtime/sim/network.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/sim/node_memory.h"

namespace ibcoll {
namespace {

Note numbered(uint16_t index) {
  Note note;
  note.index = index;
  return note;
}

sim::Params calm(int ranks) {
  sim::Params params;
  params.ranks = ranks;
  params.between_nodes = {1000, 0, 1000};  // 1 ns per byte
  return params;
}

std::vector<Event> poll(sim::Transport& transport) {
  std::array<Event, 16> events;
  const size_t count = transport.poll(events);
  return {events.begin(), events.begin() + static_cast<long>(count)};
}

TEST(SimNetwork, AMessageTakesAlphaAndBeta) {
  sim::Network network(calm(2));
  const std::array<std::byte, 500> payload{};
  ASSERT_TRUE(network.transport(0).send(1, numbered(1), payload));
  while (network.advance()) {
  }
  EXPECT_EQ(network.now(), 1500u);
  const std::vector<Event> events = poll(network.transport(1));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].payload.size(), 500u);
  EXPECT_EQ(events[0].peer, 0);
}

TEST(SimNetwork, LinksOfSenderAndReceiverTakeOneMessageAfterTheOther) {
  const std::array<std::byte, 1000> payload{};
  sim::Network fan_out(calm(5));
  for (int peer = 1; peer < 5; ++peer) ASSERT_TRUE(fan_out.transport(0).send(peer, numbered(1), payload));
  while (fan_out.advance()) {
  }
  EXPECT_EQ(fan_out.now(), 1000u + 4 * 1000);
  sim::Network fan_in(calm(5));
  for (int peer = 1; peer < 5; ++peer) ASSERT_TRUE(fan_in.transport(peer).send(0, numbered(1), payload));
  while (fan_in.advance()) {
  }
  EXPECT_EQ(fan_in.now(), 1000u + 4 * 1000);
}

TEST(SimNetwork, SlotsRunOutAndComeBackAndWakeTheSender) {
  sim::Params params = calm(2);
  params.slots_per_pair = 2;
  sim::Network network(params);
  sim::Transport& sender = network.transport(0);
  EXPECT_TRUE(sender.send(1, numbered(0), {}));
  EXPECT_TRUE(sender.send(1, numbered(1), {}));
  EXPECT_FALSE(sender.send(1, numbered(2), {}));
  while (network.advance()) {
  }
  EXPECT_FALSE(sender.send(1, numbered(2), {}));
  EXPECT_EQ(poll(network.transport(1)).size(), 2u);
  EXPECT_FALSE(sender.send(1, numbered(2), {}));  // still in the hands of the receiver
  EXPECT_EQ(poll(network.transport(1)).size(), 0u);
  while (network.has_runnable()) network.take_runnable();
  while (network.advance()) {
  }
  ASSERT_TRUE(network.has_runnable());
  EXPECT_EQ(network.take_runnable(), 0);
  EXPECT_TRUE(sender.send(1, numbered(2), {}));
  EXPECT_EQ(network.counters().no_credit, 3u);
}

// It retries all that was refused: a wake-up for each refusal would breed more of them than time can use up.
TEST(SimNetwork, ARefusedRankIsWokenOnce) {
  sim::Params params = calm(3);
  params.refuse_permille = 1000;
  sim::Network network(params);
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(network.transport(0).send(1 + i % 2, numbered(1), {}));
    ASSERT_TRUE(network.advance());
    EXPECT_FALSE(network.advance()) << "round " << round;
    ASSERT_TRUE(network.has_runnable());
    EXPECT_EQ(network.take_runnable(), 0);
  }
}

TEST(SimNetwork, PairsKeepTheirOrderAndOthersDoNot) {
  sim::Params params = calm(3);
  params.between_nodes.jitter_ns = 100000;
  params.slots_per_pair = 1000;
  bool crossed = false;
  sim::Network network(params);
  for (uint16_t i = 0; i < 200; ++i) {
    ASSERT_TRUE(network.transport(0).send(2, numbered(i), {}));
    ASSERT_TRUE(network.transport(1).send(2, numbered(i), {}));
  }
  std::array<uint16_t, 2> next{};
  while (network.advance()) {
    for (const Event& event : poll(network.transport(2))) {
      EXPECT_EQ(event.note.index, next[static_cast<size_t>(event.peer)]++);
      if (next[1] > next[0]) crossed = true;
    }
  }
  EXPECT_EQ(next[0], 200);
  EXPECT_EQ(next[1], 200);
  EXPECT_TRUE(crossed);
}

// Runs random traffic of messages and puts; returns the trace.
uint64_t random_traffic(uint64_t seed) {
  sim::Params params;
  params.ranks = 4;
  params.seed = seed;
  params.refuse_permille = 100;
  sim::Network network(params);
  sim::Random random(seed);
  std::vector<std::byte> memory(4 * 64), source(64);
  std::array<RemoteRegion, 4> regions;
  for (int to = 0; to < 4; ++to) {
    const size_t at = static_cast<size_t>(to);
    regions[at] = network.transport(to).expose((to + 1) % 4, std::span(memory).subspan(64 * at, 64));
  }
  for (int i = 0; i < 500; ++i) {
    const int from = static_cast<int>(random.below(4));
    const int to = static_cast<int>(random.below(4));
    network.transport(from).send(to, numbered(1), std::span(source).first(random.below(64)));
    const int owner = (from + 3) % 4;
    network.transport(from).put(owner, regions[static_cast<size_t>(owner)], source, numbered(2), 5);
    network.advance();
    poll(network.transport(to));
  }
  return network.trace_hash();
}

TEST(SimNetwork, ASeedGivesTheSameRunEachTime) {
  EXPECT_EQ(random_traffic(1), random_traffic(1));
  EXPECT_NE(random_traffic(1), random_traffic(2));
}

TEST(SimNetwork, PutsReachExposedMemoryOnly) {
  for (uint64_t seed = 1; seed <= 32; ++seed) {  // every way of landing
    sim::Params params = calm(3);
    params.seed = seed;
    sim::Network network(params);
    std::array<std::byte, 16> memory{};
    const std::array<std::byte, 8> source{std::byte{1}, std::byte{2}};
    const RemoteRegion region = network.transport(1).expose(0, std::span(memory).first(8));
    const RemoteRegion foreign = network.transport(1).expose(2, std::span(memory).subspan(8));
    network.transport(0).put(1, foreign, source, numbered(1), 1);
    network.transport(0).put(1, region, source, numbered(2), 2);
    std::vector<Event> events;
    bool sent = false;
    while (network.advance()) {
      for (const Event& event : poll(network.transport(1))) events.push_back(event);
      for (const Event& event : poll(network.transport(0))) sent = sent || event.kind == Event::Kind::kSent;
    }
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].note.index, 2);
    EXPECT_EQ(std::memcmp(memory.data(), source.data(), 8), 0);
    for (size_t i = 8; i < 16; ++i) EXPECT_EQ(memory[i], std::byte{0});
    EXPECT_EQ(network.counters().dropped_puts, 1u);
    network.transport(1).conceal(0, region);
    network.transport(1).conceal(2, foreign);
    EXPECT_EQ(network.transport(1).exposed_regions(), 0u);
    const RemoteRegion next = network.transport(1).expose(0, memory);
    network.transport(0).put(1, region, source, numbered(3), 3);  // the old right is worth nothing
    while (network.advance()) {
    }
    EXPECT_TRUE(poll(network.transport(1)).empty());
    EXPECT_EQ(network.counters().dropped_puts, 2u);
    network.transport(1).conceal(0, next);
  }
}

TEST(SimNetwork, ADeadRankIsReportedOnce) {
  for (const sim::Detection detection : {sim::Detection::kByItself, sim::Detection::kWhenChecked}) {
    sim::Params params = calm(3);
    params.detection = detection;
    sim::Network network(params);
    network.kill(1, 5000);
    while (network.advance()) {
    }
    if (detection == sim::Detection::kWhenChecked) {
      EXPECT_TRUE(poll(network.transport(0)).empty());
      network.transport(0).check_peers();
    }
    const std::vector<Event> events = poll(network.transport(0));
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].kind, Event::Kind::kPeerFailed);
    EXPECT_EQ(events[0].peer, 1);
    const std::string why(reinterpret_cast<const char*>(events[0].payload.data()), events[0].payload.size());
    EXPECT_EQ(why, "sim: rank 1 died at 5000 ns");
    EXPECT_FALSE(network.transport(0).send(1, numbered(1), {}));
    network.transport(0).check_peers();
    EXPECT_TRUE(poll(network.transport(0)).empty());
  }
}

// A put reads the memory of its sender, which is gone when it arrives. The message after it has left before the death.
TEST(SimNetwork, NothingArrivesAfterAPutThatIsLost) {
  sim::Params params = calm(2);
  params.random = false;
  sim::Network network(params);
  std::vector<std::byte> memory(8);
  const RemoteRegion region = network.transport(1).expose(0, memory);
  const std::array<std::byte, 8> source{};
  ASSERT_EQ(network.transport(0).put(1, region, source, numbered(1), 1), PutResult::kPending);
  ASSERT_TRUE(network.transport(0).send(1, numbered(2), {}));
  network.kill(0, 500);
  while (network.advance()) {
  }
  const std::vector<Event> events = poll(network.transport(1));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, Event::Kind::kPeerFailed);
  EXPECT_EQ(network.counters().lost_messages, 2u);
  network.transport(1).conceal(0, region);
}

TEST(SimNetwork, WhoNeverTalkedToADeadRankHearsOfItWhenTrying) {
  sim::Params params = calm(3);
  params.report_to_all = false;
  sim::Network network(params);
  ASSERT_TRUE(network.transport(1).send(2, numbered(1), {}));
  network.kill(1, 5000);
  while (network.advance()) {
  }
  EXPECT_EQ(poll(network.transport(0)).size(), 0u);
  EXPECT_EQ(poll(network.transport(2)).size(), 2u);  // the message, then the failure
  EXPECT_TRUE(network.transport(0).send(1, numbered(1), {}));
  while (network.advance()) {
  }
  EXPECT_EQ(poll(network.transport(0)).size(), 1u);
}

TEST(SimNodes, RanksOfANodeShareMemory) {
  sim::Params params = calm(4);
  params.node_of = {0, 1, 0, 1};
  sim::Network network(params);
  sim::Nodes nodes(network, sim::Reads::kAll, 1 << 20);
  Result<uint64_t> offset = nodes.memory(0).allocate(10000);
  ASSERT_TRUE(offset.ok());
  EXPECT_EQ(*nodes.memory(0).at(*offset, 10000), *nodes.memory(2).at(*offset, 10000));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(*nodes.memory(2).at(*offset, 1)) % 4096, 0u);
  for (int i = 0; i < 10000; ++i) ASSERT_EQ((*nodes.memory(2).at(*offset, 10000))[i], std::byte{0});
  EXPECT_EQ(nodes.memory(2).allocate(1 << 20).status().code(), IBCOLL_ERR_NO_MEMORY);
  nodes.memory(0).release(*offset, 10000);
  EXPECT_EQ(nodes.blocks(), 0u);
  EXPECT_TRUE(nodes.memory(2).allocate(1 << 20).ok());
}

TEST(SimNodes, NobodyWritesBeyondTheEndOfALongSegment) {
  constexpr uint64_t kBytes = 1 << 18;
  sim::Network network(calm(2));
  sim::Nodes nodes(network, sim::Reads::kAll, 2 * kBytes);
  Result<uint64_t> offset = nodes.memory(0).allocate(kBytes);
  ASSERT_TRUE(offset.ok());
  std::byte* const memory = *nodes.memory(0).at(*offset, kBytes);
  memory[kBytes - 1] = std::byte{1};
  EXPECT_DEATH(memory[kBytes] = std::byte{1}, "");
}

TEST(SimNodes, ReadsAreAllowedAsConfigured) {
  sim::Network network(calm(2));
  sim::Nodes open(network, sim::Reads::kAll), closed(network, sim::Reads::kNone);
  const std::array<std::byte, 4> from{std::byte{7}};
  std::array<std::byte, 4> into{};
  const uint64_t address = reinterpret_cast<uintptr_t>(from.data());
  EXPECT_FALSE(closed.memory(0).can_read(1));
  EXPECT_EQ(closed.memory(0).read(1, address, into).code(), IBCOLL_ERR_UNSUPPORTED);
  EXPECT_TRUE(open.memory(0).read(1, address, into).ok());
  EXPECT_EQ(into, from);
}

}  // namespace
}  // namespace ibcoll
