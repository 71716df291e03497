// SPDX-License-Identifier: BSD-3-Clause
// A receiver that takes one message at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/conformance/world.h"

namespace ibcoll::conformance {
namespace {

// All senders have sent before the receiver looks.
TEST(ShmTurns, ASenderOfManyMessagesHoldsNobodyBack) {
  const auto shm =
      std::find_if(makers().begin(), makers().end(), [](const Maker& maker) { return maker.name == "shm"; });
  ASSERT_NE(shm, makers().end());
  const std::unique_ptr<Group> group = shm->make(4, 1);
  ASSERT_NE(group, nullptr);
  for (int i = 0; i < 10; ++i)
    for (const int sender : {1, 2}) ASSERT_TRUE(group->at(sender).send(0, {}, {}));
  ASSERT_TRUE(group->at(3).send(0, {}, {}));
  std::vector<int> senders;
  for (int i = 0; i < 3; ++i) {
    Event one;
    ASSERT_EQ(group->at(0).poll({&one, 1}), 1u);
    senders.push_back(one.peer);
  }
  EXPECT_EQ(senders, (std::vector<int>{1, 2, 3}));
}

// A ring is full most of the time, with messages of all lengths: each stays as it is until it is taken.
TEST(ShmTurns, WhatWasNotTakenStays) {
  const auto shm =
      std::find_if(makers().begin(), makers().end(), [](const Maker& maker) { return maker.name == "shm"; });
  ASSERT_NE(shm, makers().end());
  const std::unique_ptr<Group> group = shm->make(2, 1);
  ASSERT_NE(group, nullptr);
  constexpr size_t kMessages = 300;
  const auto message = [slot = group->at(0).slot_bytes()](size_t number) {
    std::vector<std::byte> bytes(number * 7919 % (slot + 1));
    fill(bytes, number);
    return bytes;
  };
  for (size_t sent = 0, taken = 0; taken < kMessages; ++taken) {
    while (sent < kMessages && group->at(0).send(1, {}, message(sent))) ++sent;
    Event one;
    ASSERT_EQ(group->at(1).poll({&one, 1}), 1u);
    const std::vector<std::byte> wanted = message(taken);
    ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), one.payload.begin(), one.payload.end())) << taken;
  }
}

}  // namespace
}  // namespace ibcoll::conformance
