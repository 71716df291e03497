// SPDX-License-Identifier: BSD-3-Clause
// What a peer may write to, and what it says of itself, is not believed.
#include "runtime/verbs/wire.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

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

// Bytes that are not all there yet, or are those of another epoch, do not fit the digest.
TEST(VerbsWire, TheDigestCoversAllThatIsSent) {
  const auto keys = std::make_unique<Rekeys>();
  keys->epoch = 2;
  keys->count = 2;
  keys->keys[0] = {1, 2, 3};
  keys->keys[1] = {4, 5, 6};
  const uint64_t digest = keys->digest_now();
  std::swap(keys->keys[0], keys->keys[1]);
  EXPECT_NE(keys->digest_now(), digest);
  std::swap(keys->keys[0], keys->keys[1]);
  for (uint32_t* word : {&keys->epoch, &keys->count, &keys->keys[0].exposure, &keys->keys[0].advertised,
                         &keys->keys[0].key, &keys->keys[1].exposure, &keys->keys[1].advertised, &keys->keys[1].key}) {
    ++*word;
    EXPECT_NE(keys->digest_now(), digest);
    --*word;
  }
  EXPECT_EQ(keys->digest_now(), digest);
}

// The length that was read first counts, not a later value.
TEST(VerbsWire, APayloadIsWhereTheFirstLookSays) {
  const auto slot = std::make_unique<Slot>();
  slot->header.bytes = 65535;
  EXPECT_EQ(slot->payload_of(0), slot->payload + kSlotPayload);
  EXPECT_EQ(slot->payload_of(9), slot->payload + kSlotPayload - 16);
  EXPECT_EQ(slot->payload_of(kSlotPayload), slot->payload);
}

}  // namespace
}  // namespace ibcoll::verbs
