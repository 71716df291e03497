// SPDX-License-Identifier: BSD-3-Clause
// Messages in words, as their receiver sees them, without a device: in whatever order the words come, and whatever was
// there before.
#include "runtime/verbs/words.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "runtime/verbs/receiving.h"

namespace ibcoll::verbs {
namespace {

class VerbsWords : public testing::Test {
 protected:
  VerbsWords() { receiving_.use(*channel_, Notify::kWords); }

  static std::array<std::byte, kSlotPayload> payload(uint64_t sequence) {
    std::array<std::byte, kSlotPayload> bytes{};
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(sequence + 3 * i);
    return bytes;
  }
  static SlotHeader header(uint64_t sequence, size_t bytes) {
    SlotHeader made;
    made.note = {~sequence, sequence + 1, 2, 3, 4, 5, 6};
    made.consumed = sequence + 7, made.address = ~uint64_t{8}, made.exposure = 9;
    made.bytes = static_cast<uint16_t>(bytes), made.kind = SlotKind::kSmallPut, made.sequence = sequence;
    return made;
  }
  Slot& slot(uint64_t sequence) { return channel_->landing.slots[(sequence - 1) % kSlots]; }
  // The words of message `sequence`, and where its last one lands.
  struct Written {
    std::array<uint64_t, Words::kMost> words;
    size_t count;
    std::byte* end;
  };
  Written write(uint64_t sequence, size_t bytes) {
    Written written{{}, Words::count_for(bytes), reinterpret_cast<std::byte*>(&slot(sequence) + 1)};
    Words::write(header(sequence, bytes), payload(sequence).data(), written.words);
    return written;
  }
  static void land(const Written& written, size_t word) {
    std::memcpy(written.end - (written.count - word) * sizeof(uint64_t), &written.words[word], sizeof(uint64_t));
  }
  void land_all(uint64_t sequence, size_t bytes) {
    const Written written = write(sequence, bytes);
    for (size_t i = 0; i < written.count; ++i) land(written, i);
  }
  // As with imm.
  void land_as_slot(uint64_t sequence, std::byte fill) {
    Slot& to = slot(sequence);
    std::memset(static_cast<void*>(&to), static_cast<int>(fill), sizeof to);
    to.header.sequence = sequence;
    receiving_.add_immediate();
  }
  void expect_next(uint64_t sequence, size_t bytes) {
    ASSERT_TRUE(receiving_.has_next());
    SlotHeader got;
    const std::byte* const content = receiving_.take_next(got);
    const SlotHeader sent = header(sequence, bytes);
    EXPECT_EQ(std::memcmp(&got, &sent, sizeof got), 0) << sequence;
    EXPECT_EQ(std::memcmp(content, payload(sequence).data(), bytes), 0) << sequence << ", " << bytes << " bytes";
  }

  const std::unique_ptr<Channel> channel_ = std::make_unique<Channel>();
  Receiving receiving_;
};

TEST_F(VerbsWords, AMessageIsThereWhenAllItsWordsAre) {
  uint64_t sequence = 0;
  for (size_t bytes = 0; bytes <= Words::kMostPayload; ++bytes)
    for (const size_t last : {size_t{0}, Words::count_for(bytes) / 2, Words::count_for(bytes) - 1}) {
      const Written written = write(++sequence, bytes);
      for (size_t i = 0; i < written.count; ++i)
        if (i != last) land(written, i);
      ASSERT_FALSE(receiving_.has_next()) << bytes << " bytes without word " << last;
      ASSERT_EQ(receiving_.delivered(), sequence - 1);
      land(written, last);
      ASSERT_EQ(receiving_.delivered(), sequence);
      ASSERT_NO_FATAL_FAILURE(expect_next(sequence, bytes));
      receiving_.release();
    }
}

TEST_F(VerbsWords, WhatWasThereBeforeIsNotTakenForWords) {
  for (uint64_t generation = 0; generation < 3; ++generation) {
    for (uint64_t sequence = generation * kSlots + 1; sequence <= (generation + 1) * kSlots; ++sequence) {
      // As if each of its words had the tag of the generation after it.
      land_as_slot(sequence, static_cast<std::byte>(0x80 | (generation + 1)));
      SlotHeader got;
      ASSERT_TRUE(receiving_.has_next());
      receiving_.take_next(got);
      EXPECT_EQ(got.sequence, sequence);
      receiving_.release();
    }
    const Written next = write((generation + 1) * kSlots + 1, Words::kMostPayload);
    land(next, next.count - 1);
    EXPECT_FALSE(receiving_.has_next()) << "of " << next.count << " words the last one is there";
    Words::clear(slot(1));
  }
}

// The immediate of a later message says that the words before it are there, and is not that of theirs.
TEST_F(VerbsWords, WordsUseUpNoImmediate) {
  land_all(1, 8);
  land_all(2, 0);
  land_as_slot(3, std::byte{1});
  land_all(4, 128);
  EXPECT_EQ(receiving_.delivered(), 4u);
  expect_next(1, 8);
  expect_next(2, 0);
  SlotHeader got;
  receiving_.take_next(got);
  EXPECT_EQ(got.sequence, 3u);
  expect_next(4, 128);
  EXPECT_FALSE(receiving_.has_next());
  land_as_slot(5, std::byte{1});
  EXPECT_TRUE(receiving_.has_next());
}

// A length that the peer changes afterwards is not believed.
TEST_F(VerbsWords, ALengthThatChangesReadsNothingElse) {
  land_all(1, 16);
  auto* const last = reinterpret_cast<std::byte*>(&slot(1) + 1) - sizeof(uint64_t);
  ASSERT_TRUE(Words::are_in(slot(1), 1));
  last[4] = std::byte{0xff};
  EXPECT_FALSE(Words::are_in(slot(1), 1));
  SlotHeader got;
  Words::read(slot(1), 1, got);
  EXPECT_GT(got.bytes, kSlotPayload);
}

}  // namespace
}  // namespace ibcoll::verbs
