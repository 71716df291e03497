// SPDX-License-Identifier: BSD-3-Clause
// What a peer may write to, and what it says of itself, is not believed.
#include "runtime/verbs/wire.h"

#include <gtest/gtest.h>

#include <memory>

namespace ibcoll::verbs {
namespace {

TEST(VerbsWire, MoreKeysThanThereIsRoomForAreNone) {
  const auto keys = std::make_unique<Rekeys>();
  keys->count = kMostRekeys;
  EXPECT_TRUE(keys->fits());
  EXPECT_EQ(keys->bytes(), sizeof(Rekeys));
  keys->count = kMostRekeys + 1;
  EXPECT_FALSE(keys->fits());
  Greeting greeting;
  greeting.rekeys = kMostRekeys;
  EXPECT_TRUE(greeting.fits());
  greeting.rekeys = 65535;
  EXPECT_FALSE(greeting.fits());
}

// The length that was looked at counts, not the one that is there by now.
TEST(VerbsWire, APayloadIsWhereTheFirstLookSays) {
  const auto slot = std::make_unique<Slot>();
  slot->header.bytes = 65535;
  EXPECT_EQ(slot->payload_of(0), slot->payload + kSlotPayload);
  EXPECT_EQ(slot->payload_of(9), slot->payload + kSlotPayload - 16);
  EXPECT_EQ(slot->payload_of(kSlotPayload), slot->payload);
}

}  // namespace
}  // namespace ibcoll::verbs
