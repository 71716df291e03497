// SPDX-License-Identifier: BSD-3-Clause
// The messages that a rank receives from one peer, over all connections, in its landing slots: which messages have
// arrived, which were handed out, and which credit is not returned yet (by runtime/verbs/send.cc).
//   notified <= released <= handed out <= released + kSlots. notified is 0 again after a new connection.
#pragma once

#include <atomic>

#include "runtime/verbs/channel.h"

namespace ibcoll::verbs {

class Receiving {
 public:
  // Before anything else but questions. `notify`: how this rank learns of messages.
  void use(Channel& channel, Notify notify) {
    channel_ = &channel;
    notify_ = notify;
  }

  // ---- messages
  uint64_t handed_out() const { return handed_out_; }
  bool has_next() const { return has(handed_out_ + 1, 0); }
  // With Notify::kMemory: the slot of the next message says that it is there. A put has its immediate, too.
  bool has_written() const { return channel_ != nullptr && is_written(handed_out_ + 1); }
  // The last one that has landed, handed out or not.
  uint64_t delivered() const {
    uint64_t sequence = handed_out_, used = 0;
    while (sequence - released_ < kSlots && has(sequence + 1, used)) {
      ++sequence;
      if (takes_immediate(landed(sequence).header.kind)) ++used;
    }
    return sequence;
  }
  // Whether a goodbye is among those that were not handed out.
  bool has_goodbye() const {
    const uint64_t end = delivered();
    for (uint64_t sequence = handed_out_ + 1; sequence <= end; ++sequence)
      if (landed(sequence).header.kind == SlotKind::kLeaving) return true;
    return false;
  }
  void add_immediate() { ++immediates_; }
  // With has_next(). The slot stays as it is until release(); the header is a copy, as the peer may write there at any
  // time.
  const Slot& take_next(SlotHeader& header) {
    const Slot& slot = landed(++handed_out_);
    header = slot.header;
    if (takes_immediate(header.kind)) --immediates_;
    return slot;
  }

  // ---- credit
  uint64_t released() const { return released_; }
  // Something was handed out since the last release().
  bool has_unreleased() const { return released_ != handed_out_; }
  // The slots of all that was handed out may be written again.
  void release() { released_ = handed_out_; }
  // The peer would run out of slots if it was not notified now.
  bool credit_is_due() const { return released_ - notified_ >= kSlots / 2; }
  void notified() { notified_ = released_; }
  // The notification may have been lost.
  void forget_notified() { notified_ = 0; }

 private:
  const Slot& landed(uint64_t sequence) const { return channel_->landing.slots[(sequence - 1) % kSlots]; }
  bool takes_immediate(SlotKind kind) const { return notify_ == Notify::kImmediate || kind == SlotKind::kPut; }
  // The sequence number is only read here; a const object has no atomic_ref in C++20.
  bool is_written(uint64_t sequence) const {
    auto& word = const_cast<uint64_t&>(landed(sequence).header.sequence);
    return std::atomic_ref(word).load(std::memory_order_acquire) == sequence;
  }
  // Whether this message has arrived. Earlier messages that were not handed out use `immediates_used` immediates.
  bool has(uint64_t sequence, uint64_t immediates_used) const {
    if (channel_ == nullptr) return false;
    if (notify_ == Notify::kImmediate) return immediates_ > immediates_used;
    if (!is_written(sequence)) return false;
    return landed(sequence).header.kind != SlotKind::kPut || immediates_ > immediates_used;
  }

  Channel* channel_ = nullptr;
  Notify notify_ = Notify::kImmediate;
  uint64_t handed_out_ = 0;
  uint64_t immediates_ = 0;  // received and not handed out
  uint64_t released_ = 0;
  uint64_t notified_ = 0;  // the part of released_ that the peer knows
};

}  // namespace ibcoll::verbs
