// SPDX-License-Identifier: BSD-3-Clause
// A short message as words that each say that they are there: 7 bytes of the message, then a tag. No processor sees a
// word half written, so the message is whole when all its words have the tag, in whatever order the device writes them.
// It needs no immediate: no receive is used up at its other end, and no completion comes.
//
// The words end where the slot ends: those of the payload, then those of the header, whose last one tells how many there
// are. The receiver clears them before it returns credit, so that no tag is older than the message that it belongs to.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <span>

#include "runtime/verbs/wire.h"

namespace ibcoll::verbs {

static_assert(std::endian::native == std::endian::little);  // the tag is not to be found in a number of a message

class Words {
 public:
  static constexpr size_t kMostPayload = 128;  // bytes; with more, a completion costs less than so many words
  static constexpr size_t kMost = 27;

  // For a payload of so many bytes, at most kMostPayload.
  static constexpr size_t count_for(size_t bytes) { return kOfHeader + (bytes + kContent - 1) / kContent; }

  // What a message in the form of a slot is as words: the first count_for(header.bytes) of `to`.
  static void write(const SlotHeader& header, const std::byte* payload, std::span<uint64_t, kMost> to) {
    const size_t of_payload = count_for(header.bytes) - kOfHeader;
    const auto tag = tag_of(header.sequence);
    for (size_t i = 0; i < of_payload; ++i) {
      const size_t at = i * kContent;
      to[i] = tagged(payload + at, std::min(kContent, header.bytes - at), tag);
    }
    const auto* const content = reinterpret_cast<const std::byte*>(&header);
    for (size_t i = 0; i < kOfHeader; ++i) to[of_payload + i] = tagged(content + i * kContent, kContent, tag);
  }

  // Whether message `sequence` is in its slot as words, all of them.
  static bool are_in(const Slot& slot, uint64_t sequence) {
    const uint64_t tag = tag_of(sequence), last = load(slot, 1);
    if (last >> kTagShift != tag) return false;
    const size_t bytes = field(last, offsetof(SlotHeader, bytes));
    if (bytes > kMostPayload) return false;
    for (size_t i = count_for(bytes); i > 1; --i)
      if (load(slot, i) >> kTagShift != tag) return false;
    return true;
  }
  // With are_in().
  static SlotKind kind_in(const Slot& slot) {
    return static_cast<SlotKind>(field(load(slot, 1), offsetof(SlotHeader, kind)));
  }
  // With are_in(): the header, and the payload where the slot has room for longer messages. The peer may write there at
  // any time, so the length may be another one by now: what does not fit is not read.
  static const std::byte* read(Slot& slot, uint64_t sequence, SlotHeader& header) {
    auto* const content = reinterpret_cast<std::byte*>(&header);
    for (size_t i = 0; i < kOfHeader; ++i) {
      const uint64_t word = load(slot, kOfHeader - i);
      std::memcpy(content + i * kContent, &word, kContent);
    }
    header.sequence = sequence;
    const size_t all = count_for(std::min<size_t>(header.bytes, kMostPayload));
    for (size_t i = 0; i < all - kOfHeader; ++i) {
      const uint64_t word = load(slot, all - i);
      std::memcpy(slot.payload + i * kContent, &word, sizeof word);
    }
    return slot.payload;
  }
  // No message is seen here any more until the peer writes the next one.
  static void clear(Slot& slot) { std::memset(end_of(slot) - kMost * sizeof(uint64_t), 0, kMost * sizeof(uint64_t)); }

 private:
  static constexpr size_t kContent = 7;  // bytes of the message in a word
  static constexpr int kTagShift = 56;
  static constexpr size_t kOfHeader = offsetof(SlotHeader, sequence) / kContent;
  static_assert(kOfHeader * kContent == offsetof(SlotHeader, sequence));

  // Never that of an empty word, nor of the number at the end of a slot.
  static constexpr uint64_t tag_of(uint64_t sequence) { return 0x80 | ((sequence - 1) / kSlots & 0x7f); }
  static uint64_t tagged(const std::byte* content, size_t bytes, uint64_t tag) {
    uint64_t word = 0;
    std::memcpy(&word, content, bytes);
    return word | tag << kTagShift;
  }
  static std::byte* end_of(const Slot& slot) { return reinterpret_cast<std::byte*>(const_cast<Slot*>(&slot) + 1); }
  // The i-th from the end, from 1.
  static uint64_t load(const Slot& slot, size_t i) {
    auto& word = *reinterpret_cast<uint64_t*>(end_of(slot) - i * sizeof(uint64_t));
    return std::atomic_ref(word).load(std::memory_order_acquire);
  }
  // Two bytes of the header that are in its last word.
  static uint16_t field(uint64_t last, size_t offset) {
    return static_cast<uint16_t>(last >> 8 * (offset - (kOfHeader - 1) * kContent));
  }
  static_assert(offsetof(SlotHeader, bytes) >= (kOfHeader - 1) * kContent);
  static_assert(offsetof(SlotHeader, kind) >= (kOfHeader - 1) * kContent);
};
static_assert(Words::count_for(Words::kMostPayload) == Words::kMost);

}  // namespace ibcoll::verbs
