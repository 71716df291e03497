// SPDX-License-Identifier: BSD-3-Clause
// The bookkeeping below UCX: credit, order, exposures; and the end of its workers.
#include <gtest/gtest.h>

#include <algorithm>
#include <latch>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "runtime/ucx/exposures.h"
#include "runtime/ucx/transport.h"
#include "runtime/ucx/windows.h"
#include "runtime/ucx/worker.h"
#include "tests/conformance/world.h"

namespace ibcoll::ucx {
namespace {

using State = ReceiveWindow::Entry::State;

TEST(UcxWindows, SenderIsBoundInMessagesAndBytes) {
  SendWindow window;
  for (uint32_t i = 0; i < kWindowMessages; ++i) {
    ASSERT_TRUE(window.has_room(0));
    window.take(0);
  }
  EXPECT_FALSE(window.has_room(0));
  window.consumed(1);
  EXPECT_TRUE(window.has_room(0));
  window.consumed(kWindowMessages);
  EXPECT_EQ(window.in_flight(), 0u);
  for (uint32_t bytes = 0; bytes + 60'000 <= kWindowBytes; bytes += 60'000) {
    ASSERT_TRUE(window.has_room(60'000));
    window.take(60'000);
  }
  EXPECT_FALSE(window.has_room(60'000));
}

TEST(UcxWindows, LateAndSenselessCreditIsIgnored) {
  SendWindow window;
  for (int i = 0; i < 10; ++i) window.take(10);
  window.consumed(7);
  window.consumed(3);  // late
  EXPECT_EQ(window.in_flight(), 3u);
  window.consumed(11);  // more than was sent
  EXPECT_EQ(window.in_flight(), 3u);
}

TEST(UcxWindows, ReceiverRestoresTheOrder) {
  std::mt19937_64 random(conformance::test_seed());
  SCOPED_TRACE("repeat with IBCOLL_TEST_SEED=" + std::to_string(conformance::test_seed()));
  ReceiveWindow window;
  uint32_t expected = 0;
  for (uint32_t base = 0; base < 100 * kWindowMessages; base += kWindowMessages) {
    std::vector<uint32_t> sequences(kWindowMessages);
    for (uint32_t i = 0; i < kWindowMessages; ++i) sequences[i] = base + i;
    std::shuffle(sequences.begin(), sequences.end(), random);
    for (const uint32_t sequence : sequences) {
      ASSERT_TRUE(window.make_room(sequence));
      ReceiveWindow::Entry* entry = window.find(sequence);
      ASSERT_NE(entry, nullptr);
      ASSERT_EQ(entry->state, State::kMissing);
      entry->note.op = sequence;
      window.set_state(sequence, sequence % 5 == 3 ? State::kDropped : State::kReady);
      for (ReceiveWindow::Entry out; window.pop(out); ++expected) {
        if (expected % 5 == 3) ++expected;
        ASSERT_EQ(out.note.op, expected);
      }
    }
  }
  EXPECT_EQ(window.find(window.consumed() + kWindowMessages), nullptr);
  EXPECT_EQ(window.find(window.consumed() - 1), nullptr);
}

TEST(UcxWindows, NothingPassesALandingPut) {
  ReceiveWindow window;
  ASSERT_TRUE(window.make_room(1));
  window.set_state(0, State::kLanding);
  window.set_state(1, State::kReady);
  ReceiveWindow::Entry out;
  EXPECT_FALSE(window.pop(out));
  EXPECT_FALSE(window.ready());
  window.set_state(0, State::kReady);
  EXPECT_TRUE(window.pop(out));
  EXPECT_TRUE(window.pop(out));
  EXPECT_FALSE(window.pop(out));
}

// A peer that runs further ahead than ever: what is under way stays where it is found.
TEST(UcxWindows, ReceiverGrows) {
  ReceiveWindow window;
  ReceiveWindow::Entry out;
  EXPECT_FALSE(window.ready());
  EXPECT_FALSE(window.pop(out));
  uint32_t first = 0;
  for (uint32_t ahead = 1; ahead <= kWindowMessages; ahead = 2 * ahead + 1, first += 3) {
    for (uint32_t i = 0; i < ahead; ++i) {
      ASSERT_TRUE(window.make_room(first + i));
      window.find(first + i)->note.op = first + i;
      window.set_state(first + i, State::kReady);
    }
    for (uint32_t i = 0; i < ahead; ++i) {
      ASSERT_TRUE(window.pop(out));
      ASSERT_EQ(out.note.op, first + i);
    }
    EXPECT_FALSE(window.pop(out));
    first += ahead;
    for (int i = 0; i < 3; ++i) {  // the next numbers begin elsewhere in the memory
      ASSERT_TRUE(window.make_room(first + i));
      window.set_state(first + i, State::kReady);
      ASSERT_TRUE(window.pop(out));
    }
  }
}

TEST(UcxExposures, FindsOnlyWhatFits) {
  Exposures exposures(42);
  std::vector<std::byte> memory(1000);
  const RemoteRegion region = exposures.add(3, memory);
  EXPECT_NE(exposures.find(region.key, 3, region.address, 1000), nullptr);
  EXPECT_NE(exposures.find(region.key, 3, region.address + 999, 1), nullptr);
  EXPECT_EQ(exposures.find(region.key, 3, region.address + 1, 1000), nullptr);
  EXPECT_EQ(exposures.find(region.key, 3, region.address - 1, 1), nullptr);
  EXPECT_EQ(exposures.find(region.key, 3, region.address, 1001), nullptr);
  EXPECT_EQ(exposures.find(region.key, 3, region.address, ~size_t{0}), nullptr);
  EXPECT_EQ(exposures.find(region.key, 3, region.address + 1, ~size_t{0}), nullptr) << "its end is beyond all numbers";
  EXPECT_EQ(exposures.find(region.key, 2, region.address, 10), nullptr);
  EXPECT_EQ(exposures.find(region.key + 1, 3, region.address, 10), nullptr);
  EXPECT_EQ(exposures.find(0, 3, region.address, 10), nullptr);
  exposures.remove(region.key);
  EXPECT_EQ(exposures.find(region.key, 3, region.address, 10), nullptr);
  EXPECT_NE(exposures.add(3, memory).key, region.key);
  EXPECT_EQ(exposures.count(), 1u);
}

TEST(UcxPool, ReusesAndRefuses) {
  BufferPool pool;
  Buffer* first = pool.take(100);
  pool.give(first);
  EXPECT_EQ(pool.take(50), first);
  const size_t allocated = pool.allocated_bytes();
  pool.give(first);
  EXPECT_EQ(pool.allocated_bytes(), allocated);
  EXPECT_EQ(pool.take(BufferPool::kLargest + 1), nullptr);
  Buffer* large = pool.take(BufferPool::kLargest);
  ASSERT_NE(large, nullptr);
  std::fill_n(large->data(), BufferPool::kLargest, std::byte{1});
  pool.give(large);
}

// What UCX cannot end is kept until the process ends, however many contexts end at once.
TEST(UcxHost, WorkersAreAbandonedInManyThreads) {
  constexpr int kWorkers = 16;
  DevicePlan plan;
  plan.tls = "self";
  std::vector<std::unique_ptr<Worker>> workers;
  for (int i = 0; i < kWorkers; ++i) {
    Result<std::unique_ptr<Worker>> worker = Worker::open(NetworkParams{}, plan, /*peer_timeout=*/10);
    ASSERT_TRUE(worker.ok()) << worker.status().text();
    (*worker)->abandon();
    workers.push_back(std::move(*worker));
  }
  std::latch all(kWorkers);
  std::vector<std::thread> threads;
  for (std::unique_ptr<Worker>& worker : workers) {
    threads.emplace_back([&] {
      auto memory = std::make_unique<Memory>(worker->context(), 0);
      all.arrive_and_wait();
      worker->end(memory);
      worker.reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace ibcoll::ucx
