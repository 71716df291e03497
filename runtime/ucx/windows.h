// SPDX-License-Identifier: BSD-3-Clause
// The two ends of the credit between a sender and a receiver. Pure bookkeeping, no UCX.
//
// At most kWindowMessages messages and puts, and kWindowBytes of message payload, are accepted by send() and put() and
// not yet handed out by the receiver's poll(). That bounds the receiver's memory, whatever the sender does, and a
// receiver that does not poll costs its senders no more than that. So many messages, because a receiver that loses its
// core to another process for some milliseconds should not hold up a stream of short calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "runtime/transport/transport.h"
#include "runtime/ucx/buffer_pool.h"

namespace ibcoll::ucx {

constexpr uint32_t kWindowMessages = 1024;
constexpr uint32_t kWindowBytes = 512 * 1024;

// The sender's end.
class SendWindow {
 public:
  bool has_room(size_t bytes) const {
    return next_ - consumed_ < kWindowMessages && (bytes_ == 0 || bytes_ + bytes <= kWindowBytes);
  }
  uint32_t next() const { return next_; }
  uint32_t in_flight() const { return next_ - consumed_; }

  void take(size_t bytes) {
    sizes_[next_ % kWindowMessages] = static_cast<uint32_t>(bytes);
    bytes_ += bytes;
    ++next_;
  }

  // The receiver has handed out `count` in all, modulo 2^32. Late and impossible counts are ignored.
  void consumed(uint32_t count) {
    if (count - consumed_ > next_ - consumed_) return;
    for (; consumed_ != count; ++consumed_) bytes_ -= sizes_[consumed_ % kWindowMessages];
  }

 private:
  std::array<uint32_t, kWindowMessages> sizes_{};
  uint32_t next_ = 0;
  uint32_t consumed_ = 0;
  size_t bytes_ = 0;
};

// The receiver's end: restores the order in which messages were accepted. UCX runs the handler of a rendezvous before
// its data has arrived, and promises no order between lanes.
class ReceiveWindow {
 public:
  struct Entry {
    enum class State : uint8_t { kMissing, kLanding, kReady, kDropped };
    State state = State::kMissing;
    bool refused = false;      // a put that may not write: dropped when all of it has arrived
    bool rendezvous = false;   // UCX receives all of it at once
    uint64_t bytes = 0;        // of a message's payload; of a landing put: those still to arrive
    Buffer* buffer = nullptr;  // the payload of a message; nullptr: none
    Note note;
  };

  // Memory for the entry of a number, before find(): a peer needs more the further it runs ahead. False: there is none.
  bool make_room(uint32_t sequence) noexcept {
    return sequence - next_ < capacity_ || sequence - next_ >= kWindowMessages || grow(sequence - next_);
  }
  // The entry of a number; nullptr when no sender within its credit could use it now.
  Entry* find(uint32_t sequence) { return sequence - next_ < kWindowMessages ? &at(sequence) : nullptr; }
  // Sets the state of a found one: kReady, kDropped, or kLanding and later one of the two.
  void set_state(uint32_t sequence, Entry::State state) {
    at(sequence).state = state;
    if (state != Entry::State::kLanding) ++received_;
  }

  // Takes out what may be handed out next. False: the next one has not come, or its data has not.
  bool pop(Entry& out) {
    for (; capacity_ > 0; advance()) {
      Entry& head = at(next_);
      if (head.state == Entry::State::kDropped) continue;
      if (head.state != Entry::State::kReady) return false;
      out = head;
      advance();
      return true;
    }
    return false;
  }
  bool ready() const { return capacity_ > 0 && at(next_).state >= Entry::State::kReady; }
  uint32_t consumed() const { return next_; }
  uint32_t received() const { return received_; }

 private:
  static constexpr uint32_t kFirstEntries = 64;

  Entry& at(uint32_t sequence) const noexcept { return entries_[sequence % capacity_]; }
  void advance() {
    at(next_) = Entry{};
    ++next_;
  }
  bool grow(uint32_t ahead) noexcept {
    uint32_t capacity = capacity_ > 0 ? capacity_ : kFirstEntries;
    while (capacity <= ahead) capacity *= 2;
    std::unique_ptr<Entry[]> entries(new (std::nothrow) Entry[capacity]);
    if (!entries) return false;
    for (uint32_t i = 0; i < capacity_; ++i) entries[(next_ + i) % capacity] = at(next_ + i);
    entries_ = std::move(entries);
    capacity_ = capacity;
    return true;
  }

  std::unique_ptr<Entry[]> entries_;  // by number modulo capacity_
  uint32_t capacity_ = 0;             // a power of two, at most kWindowMessages
  uint32_t next_ = 0;
  uint32_t received_ = 0;  // ready or dropped, in any order
};

}  // namespace ibcoll::ucx
