// SPDX-License-Identifier: BSD-3-Clause
// All senders have sent before the receiver looks, and it takes one message at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/conformance/group.h"

namespace ibcoll::conformance {
namespace {

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

}  // namespace
}  // namespace ibcoll::conformance
