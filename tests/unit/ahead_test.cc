// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/ahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "runtime/engine/team_credit.h"

namespace ibcoll {
namespace {

constexpr uint64_t kMany = uint64_t{1} << 40;

// How many collectives from `op` on may begin, of `bytes` bytes each.
uint32_t begun(Ahead& ahead, uint32_t op, const Ahead::Limits& limits, uint64_t bytes) {
  uint32_t count = 0;
  while (count < 1000 && ahead.begin(op + count, limits)) {
    ahead.sent(op + count, bytes);
    ++count;
  }
  return count;
}

TEST(Ahead, SoManyCollectives) {
  for (const uint32_t most : {1, 2, 3, 7, 8, 9, 16, 100, 128}) {
    Ahead ahead;
    EXPECT_EQ(begun(ahead, 1, {most, kMany}, 8), most);
    ahead.completed(most);
    EXPECT_EQ(begun(ahead, most + 1, {most, kMany}, 8), most) << "all are complete";
  }
}

TEST(Ahead, SoManyBytes) {
  Ahead ahead;
  const Ahead::Limits limits{128, 100'000};
  EXPECT_EQ(begun(ahead, 1, limits, 8192), 13u) << "the last one begins with 98,304";
  EXPECT_EQ(begun(ahead, 14, limits, 8192), 0u);
  ahead.completed(13);
  EXPECT_EQ(begun(ahead, 14, limits, 1 << 20), 1u) << "one is never too long";
}

// Of two calls in flight the younger one may be the first that writes to a peer.
TEST(Ahead, TheFirstMessageNeedNotBeOfTheOldestCall) {
  Ahead ahead;
  const Ahead::Limits limits{128, kMany};
  EXPECT_TRUE(ahead.begin(7, limits));
  EXPECT_TRUE(ahead.begin(5, limits));
  ahead.spilled(5, 1000);
  EXPECT_EQ(ahead.spilled(), 1000u);
  EXPECT_TRUE(ahead.completed(5));
  EXPECT_EQ(ahead.spilled(), 0u);
}

TEST(Ahead, SpilledBytesCountUntilTheirCollectiveIsComplete) {
  Ahead ahead;
  const Ahead::Limits limits{128, kMany};
  for (uint32_t op = 1; op <= 3; ++op) {
    EXPECT_TRUE(ahead.begin(op, limits));
    if (op != 2) ahead.spilled(op, 1000 * op);
  }
  EXPECT_EQ(ahead.spilled(), 4000u);
  EXPECT_TRUE(ahead.completed(1));
  EXPECT_EQ(ahead.spilled(), 3000u) << "those after it do not hold it back";
  EXPECT_TRUE(ahead.completed(3));
  EXPECT_EQ(ahead.spilled(), 0u);
}

// Of calls in flight that send by turns, whichever began first.
TEST(Ahead, BytesCountForTheirOwnCollective) {
  Ahead ahead;
  const Ahead::Limits limits{128, kMany};
  EXPECT_TRUE(ahead.begin(1, limits));
  EXPECT_TRUE(ahead.completed(1));
  for (const uint32_t op : {4, 2, 3}) {
    EXPECT_TRUE(ahead.begin(op, limits));
    ahead.spilled(op, 1);
  }
  for (uint32_t op = 2; op <= 4; ++op) ahead.spilled(op, 1000 * op);
  EXPECT_EQ(ahead.spilled(), 9003u);
  ahead.completed(2);
  EXPECT_EQ(ahead.spilled(), 7002u);
  ahead.completed(3);
  EXPECT_EQ(ahead.spilled(), 4001u);
  ahead.completed(4);
  EXPECT_EQ(ahead.spilled(), 0u);
}

// The same of eager bytes: those of a younger call do not hold an older one back, those of an older one do.
TEST(Ahead, EagerBytesCountForTheirOwnCollective) {
  Ahead ahead;
  const Ahead::Limits limits{128, 1000};
  EXPECT_TRUE(ahead.begin(5, limits));
  ahead.sent(5, 200);  // its group takes no more calls
  EXPECT_TRUE(ahead.begin(6, limits));
  ahead.sent(5, 900);
  EXPECT_FALSE(ahead.begin(7, limits));
  ahead.completed(5);
  EXPECT_TRUE(ahead.begin(7, limits)) << "the bytes were those of call 5";
}

// After any number of calls: within one group, and after so many that each group is used several times.
TEST(Ahead, BytesOfCompletedCollectivesDoNotCount) {
  for (const uint32_t most : {8, 128}) {
    Ahead ahead;
    const Ahead::Limits limits{most, 100'000};
    for (uint32_t op = 1; op < 200; op += 5) {
      EXPECT_EQ(begun(ahead, op, limits, 20'000), 5u) << most << ", " << op;
      ahead.completed(op + 4);
    }
  }
}

TEST(Ahead, HalfOfTheCreditBringsAtLeastAThird) {
  for (const uint32_t most : {2, 8, 16, 64, 128}) {
    Ahead ahead;
    EXPECT_EQ(begun(ahead, 1, {most, kMany}, 8), most);
    ahead.completed(most / 2);
    EXPECT_GE(begun(ahead, most + 1, {most, kMany}, 8), most / 3) << most;
  }
}

TEST(Ahead, OldCreditChangesNothing) {
  Ahead ahead;
  const Ahead::Limits limits{16, kMany};
  ahead.completed(500);
  EXPECT_EQ(begun(ahead, 501, limits, 8), 16u);
  ahead.completed(400);
  EXPECT_EQ(begun(ahead, 517, limits, 8), 0u);
}

// Two collectives in flight: the younger one has used all credit, the older one has not sent anything yet.
TEST(Ahead, YoungerCollectivesDoNotHoldAnOlderOneBack) {
  for (const uint32_t most : {1, 8, 128}) {
    Ahead ahead;
    EXPECT_EQ(begun(ahead, 100, {most, 1000}, 1000), 1u);
    EXPECT_TRUE(ahead.begin(98, {most, 1000}));
    EXPECT_TRUE(ahead.begin(97, {most, 1000}));
    EXPECT_FALSE(ahead.begin(101, {most, 1000}));
  }
}

TEST(Ahead, NumbersBeginAnew) {
  Ahead ahead;
  const Ahead::Limits limits{16, kMany};
  EXPECT_EQ(begun(ahead, UINT32_MAX - 5, limits, 8), 16u);
  ahead.completed(UINT32_MAX - 6 + 16);
  EXPECT_EQ(begun(ahead, UINT32_MAX - 5 + 16, limits, 8), 16u);
}

// A program whose ranks keep pace, and one whose ranks lag now and then.
TEST(Ahead, NeverMoreThanTheLimitIsOpen) {
  const Ahead::Limits limits{20, kMany};
  Ahead ahead;
  uint32_t op = 0, completed = 0, random = 1;
  for (int i = 0; i < 100'000; ++i) {
    random = random * 1664525 + 1013904223;
    if (random >> 28 < 9 && ahead.begin(op + 1, limits)) ++op;
    if (random >> 28 >= 9 && completed < op) ahead.completed(completed += 1 + (random >> 20) % (op - completed));
    ASSERT_LE(op - completed, limits.collectives);
  }
  EXPECT_GT(op, 10'000u);
}

// A rank that runs ahead of another one with eager messages, and that one, which returns credit as soon as it is due.
struct RunAhead {
  explicit RunAhead(const EngineLimits& limits) : sender(limits, 2), receiver(limits, 2) {}
  // The sender begins call `op`, unless it may not. Then it asks, if it may, and tries again when it has its answer.
  bool send(uint32_t op, uint64_t bytes) {
    if (!sender.may_send(*sender.at(1), op)) {
      if (!asks || !sender.must_ask(1)) return false;
      sender.asked(1);
      if (receiver.wanted(1)) report();
      if (!sender.may_send(*sender.at(1), op)) return false;
    }
    TeamCredit::sent(*sender.at(1), op, bytes);
    under_way[op] = bytes;
    return true;
  }
  // The receiver completes its next calls, as far as they were sent: `most` of them at most.
  void receive(uint32_t most) {
    for (auto at = under_way.find(completed + 1); most-- > 0 && at != under_way.end();
         at = under_way.find(completed + 1)) {
      receiver.ended(*receiver.at(1), ++completed, at->second, 0);
      under_way.erase(at);
      report();
    }
  }
  void report() {
    receiver.return_due(completed, [this](int) {
      TeamCredit::note_left(*receiver.at(1), completed);
      sender.peer_completed(1, completed);
    });
  }
  TeamCredit sender, receiver;
  std::map<uint32_t, uint64_t> under_way;
  uint32_t completed = 0;
  bool asks = false;
};

// The sender is up to 16 calls ahead when credit comes. What the receiver has completed does not hold the next call
// back, and nobody has to ask.
TEST(Ahead, WhatWasCompletedNeverHoldsTheNextCallBack) {
  const EngineLimits limits;
  for (const uint64_t bytes : {1, 1000, 4096, 20'000, 43'008, 49'152, 53'248, 70'000, 262'143, 262'144, 300'000})
    for (uint32_t before = 1; before <= 16; ++before) {
      RunAhead job(limits);
      for (uint32_t op = 1; op < 300; ++op) {
        if (job.send(op, bytes)) {
          if (op > before) job.receive(1);
          continue;
        }
        job.receive(1000);
        ASSERT_TRUE(job.send(op, bytes)) << bytes << " bytes, call " << op << ", " << before << " calls ahead";
      }
    }
}

// Calls of any size, up to 40 of which are in flight and begin in any order: a sender that may not continue asks.
TEST(Ahead, WhatWasCompletedNeverHoldsBackInAnyProgram) {
  EngineLimits limits;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&random](uint32_t most) { return static_cast<uint32_t>(random() % most); };
    limits.collectives_ahead = 2 + below(200);
    const uint32_t largest = 1 + below(1U << below(20)), in_flight = 1 + below(40);
    RunAhead job(limits);
    job.asks = true;
    for (uint32_t first = 1; first < 1000; first += in_flight) {
      std::vector<uint32_t> ops(in_flight);
      std::iota(ops.begin(), ops.end(), first);
      std::shuffle(ops.begin(), ops.end(), random);
      const auto begins = [&](uint32_t op) { return job.send(op, 1 + below(largest)); };
      std::erase_if(ops, begins);
      job.receive(below(3) * in_flight);
      while (!ops.empty()) {
        job.receive(1000);
        ASSERT_GT(std::erase_if(ops, begins), 0u) << "seed " << seed << ", call " << first;
      }
    }
  }
}

}  // namespace
}  // namespace ibcoll
