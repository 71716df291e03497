// SPDX-License-Identifier: BSD-3-Clause
// What a rank receives from one peer, over all connections, in its landing ring: which messages are there, which were
// handed out, and what credit the peer is owed.
//   told <= released <= handed out <= released + kSlots, but for told after a new connection, when it is 0 again.
#pragma once

#include <atomic>
#include <utility>

#include "runtime/verbs/channel.h"
#include "runtime/verbs/words.h"

namespace ibcoll::verbs {

class Receiving {
 public:
  // Before anything else but questions. `notify`: how this rank learns of messages.
  void use(Channel& channel, Notify notify) {
    channel_ = &channel;
    notify_ = notify;
  }

  // ---- messages

  Notify notify() const { return notify_; }
  // Messages may come without a completion.
  bool polls_memory() const { return notify_ != Notify::kImmediate; }
  uint64_t handed_out() const { return handed_out_; }
  bool has_next() const { return look(handed_out_ + 1, 0).here; }
  // The last one that has landed, handed out or not.
  uint64_t delivered() const {
    uint64_t sequence = handed_out_;
    for_all_landed([&](SlotKind) { ++sequence; });
    return sequence;
  }
  // Whether a goodbye is among those that were not handed out.
  bool has_goodbye() const {
    bool found = false;
    for_all_landed([&](SlotKind kind) { found |= kind == SlotKind::kLeaving; });
    return found;
  }
  void add_immediate() { ++immediates_; }
  // With has_next(). The slot stays as it is until release(); the header is a copy, as the peer may write there at any
  // time. Returns the payload, if the header's length of it is possible.
  const std::byte* take_next(SlotHeader& header) {
    const Landed found = look(++handed_out_, 0);
    Slot& slot = landed(handed_out_);
    if (found.by_immediate) --immediates_;
    if (found.as_words) return Words::read(slot, handed_out_, header);
    header = slot.header;
    return header.bytes <= kSlotPayload ? slot.payload_of(header.bytes) : nullptr;
  }

  // ---- credit
  uint64_t released() const { return released_; }
  // The slots of all that was handed out may be written again.
  void release() {
    if (notify_ == Notify::kWords)
      for (uint64_t sequence = released_ + 1; sequence <= handed_out_; ++sequence) Words::clear(landed(sequence));
    released_ = handed_out_;
  }
  // The peer runs out of slots when it is not told in time.
  bool owes_credit() const { return released_ - told_ >= kSlots / 2; }
  void told() { told_ = released_; }
  // The word may have been lost.
  void told_nothing() { told_ = 0; }

  // ---- the list of peers with messages to hand out. enlist(): false where it is in there already.
  bool enlist() { return !std::exchange(listed_, true); }
  void delist() { listed_ = false; }
  bool listed() const { return listed_; }

 private:
  Slot& landed(uint64_t sequence) const { return channel_->landing.slots[(sequence - 1) % kSlots]; }
  struct Landed {
    bool here = false;
    bool as_words = false;
    bool by_immediate = false;
    SlotKind kind = SlotKind::kMessage;
  };
  // For message `sequence`, when so many immediates of earlier ones have been used up. An immediate may be that of a
  // later message; then this one has landed as well.
  Landed look(uint64_t sequence, uint64_t immediates_used) const {
    if (channel_ == nullptr) return {};
    Slot& slot = landed(sequence);
    if (notify_ == Notify::kWords && Words::are_in(slot, sequence)) return {true, true, false, Words::kind_in(slot)};
    const bool immediate = immediates_ > immediates_used;
    if (notify_ == Notify::kMemory) {
      if (std::atomic_ref(slot.header.sequence).load(std::memory_order_acquire) != sequence) return {};
      const bool put = slot.header.kind == SlotKind::kPut;
      return {immediate || !put, false, put, slot.header.kind};
    }
    return {immediate, false, true, slot.header.kind};
  }
  template <typename Visit>
  void for_all_landed(Visit&& visit) const {
    uint64_t used = 0;
    for (uint64_t sequence = handed_out_ + 1; sequence - released_ <= kSlots; ++sequence) {
      const Landed found = look(sequence, used);
      if (!found.here) return;
      if (found.by_immediate) ++used;
      visit(found.kind);
    }
  }

  Channel* channel_ = nullptr;
  Notify notify_ = Notify::kImmediate;
  bool listed_ = false;
  uint64_t handed_out_ = 0;
  uint64_t immediates_ = 0;  // received and not handed out
  uint64_t released_ = 0;
  uint64_t told_ = 0;  // of released_, what the peer knows
};

}  // namespace ibcoll::verbs
