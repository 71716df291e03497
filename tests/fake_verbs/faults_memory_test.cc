// SPDX-License-Identifier: BSD-3-Clause
// Memory that a device does not take, and devices that promise little.
#include <fmt/format.h>

#include <new>
#include <utility>

#include "tests/fake_verbs/faulty.h"
#include "tests/multiprocess/refuse_memory.h"

namespace ibcoll::fake_verbs {
namespace {

constexpr size_t kLarge = 1 << 20;  // more than any registration for a connection

std::function<int(size_t, int)> refuse_user_memory() {
  return [](size_t bytes, int) { return bytes >= kLarge ? ENOMEM : 0; };
}

// One rank only: a receiver then takes slots, a sender bounce buffers.
TEST_F(FaultTest, MemoryThatCannotBeRegisteredIsCopied) {
  rank(1).faults.reg_mr = refuse_user_memory();
  auto world = make_connected(2);
  ASSERT_TRUE(world);
  std::vector<std::byte> own(kLarge), other(kLarge);
  EXPECT_EQ(world->at(1).expose(0, own).key, 0u);
  EXPECT_EQ(world->counter(1, "not_exposed"), 1);
  const RemoteRegion region = world->at(0).expose(1, other);
  ASSERT_NE(region.key, 0u);
  fill(own, 5);
  ASSERT_TRUE(world->put(1, 0, region, own, numbered(1)));
  ASSERT_TRUE(world->pump_until([&] { return world->messages(0, 1) == 1; }));
  EXPECT_EQ(first_wrong(other, 5), kLarge);
  EXPECT_EQ(world->counter(1, "puts_copied"), 1);
  EXPECT_EQ(world->counter(0, "puts_copied"), 0);
  world->conceal(0, 1, region);
}

TEST_F(FaultTest, SlotsThatCannotBeRegisteredAreAnErrorOnBothSides) {
  auto world = make(2);
  ASSERT_TRUE(world);
  rank(1).faults.reg_mr = [](size_t, int) { return ENOMEM; };
  expect_loss(*world, 1, "fake_0: ibv_reg_mr of ");
  EXPECT_EQ(lack(*world, 1, 0), IBCOLL_ERR_NO_MEMORY);
  expect_text(lost(*world, 1, 0), " bytes: Cannot allocate memory; ");
  expect_text(lost(*world, 0, 1), "it closed the connection to this rank; its own error says why");
}

// Each allocation of a first message is refused, one after the other. The message leaves when it is sent again.
TEST_F(FaultTest, AConnectionThatLacksMemoryIsMadeLater) {
  for (uint64_t nth = 1, refused = 1; refused; ++nth) {
    SCOPED_TRACE(nth);
    auto world = make(2);
    ASSERT_TRUE(world);
    multiprocess::refuse_allocation(nth);
    bool sent = false;
    try {
      sent = world->at(0).send(1, numbered(1), {});
    } catch (const std::bad_alloc&) {
    }
    refused = multiprocess::allocation_refused();
    multiprocess::refuse_allocation(0);
    if (!lost(*world, 0, 1).empty()) continue;
    ASSERT_TRUE(sent || world->send(0, 1, numbered(1), {}));
    ASSERT_TRUE(world->pump_until([&] { return world->messages(1, 0) == 1 || !lost(*world, 0, 1).empty(); }));
    EXPECT_EQ(world->counter(0, "reconnections"), 0) << "the first epoch was taken in vain";
  }
}

// A connection breaks, and is made anew, or cannot be: each allocation of rank 0 is refused, one after the other. What
// a poll has taken from the device is not lost for that.
TEST_F(FaultTest, AConnectionThatBreaksWhereMemoryIsShortIsMadeAnewOrLost) {
  struct Variant {
    ibv_wc_status write;
    int queue_pair;
    const char* text;
  };
  for (const Variant& variant : {Variant{IBV_WC_RETRY_EXC_ERR, 0, ""},
                                 {IBV_WC_RETRY_EXC_ERR, ENOMEM, "ibv_create_qp (reliable connection)"},
                                 {IBV_WC_GENERAL_ERR, 0, "vendor error"}})
    for (uint64_t nth = 1, refused = 1; refused; ++nth) {
      SCOPED_TRACE(fmt::format("{}, allocation {}", variant.text, nth));
      begin(conformance::test_seed() + nth);
      auto world = make_connected(2);
      ASSERT_TRUE(world);
      rank(0).faults.execute = [=, first = true](const ibv_send_wr&) mutable {
        return std::exchange(first, false) ? Outcome{variant.write} : Outcome();
      };
      ASSERT_TRUE(world->send(0, 1, numbered(1), {}));
      rank(0).faults.create_qp = [=](ibv_qp_type) { return variant.queue_pair; };
      world->put_to_sleep(0);
      const auto done = [&] { return world->messages(1, 0) == 1 || multiprocess::allocation_refused(); };
      bool failed = false;
      multiprocess::refuse_allocation(nth);
      for (int i = 0; i < 3'000 && !failed && !done(); ++i) {
        Event event;
        try {
          failed = world->at(0).poll({&event, 1}) == 1 && event.kind == Event::Kind::kPeerFailed;
        } catch (const std::bad_alloc&) {
        }
        const multiprocess::GivenMemory given;
        world->pump();
      }
      refused = multiprocess::allocation_refused();
      multiprocess::refuse_allocation(0);
      world->wake_up(0);
      if (variant.text[0] == '\0') {
        EXPECT_TRUE(world->pump_until([&] { return world->messages(1, 0) == 1; }));
        EXPECT_TRUE(world->pump_until([&] { return world->counter(0, "reconnections") == 1; }));
      } else if (!failed) {
        EXPECT_TRUE(world->pump_until([&] { return !lost(*world, 0, 1).empty(); }));
        if (!refused) expect_text(lost(*world, 0, 1), variant.text);
      }
    }
}

// The same of memory that is exposed: what was refused leaves nothing behind.
TEST_F(FaultTest, AnExposureThatLacksMemoryIsMadeLater) {
  for (uint64_t nth = 1, refused = 1; refused; ++nth) {
    SCOPED_TRACE(nth);
    auto world = make(2, {"IBCOLL_VERBS_WINDOWS=on"});
    ASSERT_TRUE(world);
    std::vector<std::byte> memory(5'000), source(5'000);
    fill(source, nth);
    RemoteRegion region;
    multiprocess::refuse_allocation(nth);
    try {
      region = world->at(1).expose(0, memory);
    } catch (const std::bad_alloc&) {
    }
    refused = multiprocess::allocation_refused();
    multiprocess::refuse_allocation(0);
    if (region.key == 0) region = world->at(1).expose(0, memory);
    ASSERT_NE(region.key, 0u);
    ASSERT_TRUE(world->put(0, 1, region, source, numbered(1)));
    ASSERT_TRUE(world->pump_until([&] { return world->messages(1, 0) == 1; }));
    EXPECT_EQ(first_wrong(memory, nth), memory.size());
    world->conceal(1, 0, region);
  }
}

TEST_F(FaultTest, ConcealingNeedsNoMemory) {
  auto world = make(2, {"IBCOLL_VERBS_WINDOWS=on"});
  ASSERT_TRUE(world);
  std::vector<std::byte> memory(20 * 5'000);
  std::vector<RemoteRegion> regions;
  for (size_t at = 0; at < memory.size(); at += 5'000)
    regions.push_back(world->at(1).expose(0, std::span(memory).subspan(at, 5'000)));
  multiprocess::refuse_allocation(1);
  bool concealed = true;
  for (const RemoteRegion& region : regions) concealed = world->at(1).conceal(0, region) && concealed;
  EXPECT_FALSE(multiprocess::allocation_refused());
  multiprocess::refuse_allocation(0);
  EXPECT_TRUE(concealed);
}

TEST_F(FaultTest, WindowsThatCannotBeMadeAreNoExposure) {
  rank(1).faults.alloc_mw = [] { return ENOMEM; };
  auto world = make_connected(2, {"IBCOLL_VERBS_WINDOWS=on"});
  ASSERT_TRUE(world);
  std::vector<std::byte> memory(5'000);
  EXPECT_EQ(world->at(1).expose(0, memory).key, 0u);
  EXPECT_EQ(world->counter(1, "not_exposed"), 1);
  ASSERT_NO_FATAL_FAILURE(expect_traffic(*world, 0, 1));
}

// The peer may know the key before there is a connection, and writes as soon as there is one.
TEST_F(FaultTest, WindowsAreBoundBeforeThePeerMayWrite) {
  script().binds_at_once = false;
  script().bind_polls = 500;
  auto world = make(2, {"IBCOLL_VERBS_WINDOWS=on"});
  ASSERT_TRUE(world);
  std::vector<std::byte> memory(5'000), source(5'000);
  fill(source, 1);
  const RemoteRegion region = world->at(1).expose(0, memory);
  ASSERT_NE(region.key, 0u);
  ASSERT_TRUE(world->put(0, 1, region, source, numbered(1)));
  EXPECT_TRUE(world->pump_until([&] { return world->messages(1, 0) == 1; }));
  EXPECT_EQ(first_wrong(memory, 1), memory.size());
  world->conceal(1, 0, region);
}

// Where the number of a message becomes visible before its bytes, only the completion of an immediate is a notice.
TEST_F(FaultTest, ANumberThatIsVisibleBeforeItsBytesIsNoNotice) {
  for (const Landing landing : {Landing::kLastFirst, Landing::kShuffled}) {
    begin(conformance::test_seed());
    script().landing = landing;
    auto world = make_connected(2);
    ASSERT_TRUE(world);
    ASSERT_NO_FATAL_FAILURE(expect_traffic(*world, 0, 1, 60));
  }
}

TEST_F(FaultTest, ADeviceThatWritesInOrderNeedsNoImmediateForAMessage) {
  auto world = make_connected(2);
  ASSERT_TRUE(world);
  ASSERT_NO_FATAL_FAILURE(expect_traffic(*world, 0, 1, 60));
  EXPECT_EQ(rank(0).counts.received, rank(1).counts.requests[IBV_WR_RDMA_WRITE_WITH_IMM]);
  EXPECT_EQ(rank(0).counts.received, 20u) << "the notes of long puts";
}

// The device of the two tests before this one is what it says.
TEST_F(FaultTest, ForcedPollingOnSuchADeviceTakesWrongBytes) {
  script().landing = Landing::kLastFirst;
  auto world = make_connected(2, {"IBCOLL_VERBS_NOTIFY=memory"});
  ASSERT_TRUE(world);
  std::vector<std::byte> payload(8'000);
  size_t wrong = 0;
  for (uint32_t i = 0; i < 100; ++i) {
    fill(payload, i);
    ASSERT_TRUE(world->send(0, 1, numbered(i), payload));
    if (!world->pump_until([&] { return !world->got(1).empty(); })) break;
    wrong += first_wrong(world->got(1).front().payload, i) != payload.size();
    world->got(1).clear();
  }
  EXPECT_GT(wrong, 50u);
}

}  // namespace
}  // namespace ibcoll::fake_verbs
