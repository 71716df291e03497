// SPDX-License-Identifier: BSD-3-Clause
// The messages that a rank sends to one peer, over all connections: message k is staged in slot k modulo kSlots, and
// lands in the peer's slot of that number. It keeps that slot until the peer says that it has consumed it: credit.
//   consumed <= accepted <= consumed + kSlots; posted <= accepted. Numbers count from 1.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <span>

#include "runtime/verbs/channel.h"
#include "runtime/verbs/registration.h"
#include "runtime/verbs/send_queue.h"

namespace ibcoll::verbs {

// A message or put that was accepted and has not been consumed by the peer, as far as is known: what is posted again
// after a new connection.
struct Outgoing {
  uint64_t sequence = 0;
  SlotKind kind = SlotKind::kMessage;
  bool refused = false;       // a put that the peer's device did not let in
  bool sent_pending = false;  // a put whose kSent is not reported yet
  // of the put, if it is one
  uint64_t posted = 0;  // bytes
  uint64_t bytes = 0;
  const std::byte* from = nullptr;
  RemoteRegion to;
  uint64_t token = 0;
  Registration* source = nullptr;  // null: the source could not be pinned, and goes through the bounce buffers
};

class Sending {
 public:
  // Before anything else.
  void use(Channel& channel) { channel_ = &channel; }

  uint64_t accepted() const { return accepted_; }
  bool has_unposted() const { return posted_up_to_ < accepted_; }
  bool has_unconsumed() const { return accepted_ > known_consumed(); }
  // From its messages, and from a counter in the landing memory, where the peer may write any value.
  uint64_t known_consumed() const {
    const uint64_t notified = std::atomic_ref(channel_->landing.consumed).load(std::memory_order_acquire);
    return notified > consumed_ && notified <= accepted_ ? notified : consumed_;
  }
  // The peer may have consumed a put of which this rank's device does not know yet that it arrived, and may send again.
  bool has_slot() const { return accepted_ - known_consumed() < kSlots && !outgoing_[accepted_ % kSlots].sent_pending; }

  Slot& staged(uint64_t sequence) const { return channel_->staging[(sequence - 1) % kSlots]; }
  // Null: it was consumed long ago.
  Outgoing* find(uint64_t sequence) {
    Outgoing& out = at(sequence);
    return out.sequence == sequence ? &out : nullptr;
  }
  std::span<Outgoing> all() { return outgoing_; }

  // With has_slot().
  Outgoing& accept(SlotKind kind) {
    Outgoing& out = at(++accepted_);
    out.sequence = accepted_;
    out.kind = kind;
    out.refused = out.sent_pending = false;
    out.posted = 0;
    return out;
  }
  // With has_unposted().
  Outgoing& next_to_post() { return at(posted_up_to_ + 1); }
  void posted_next() { ++posted_up_to_; }
  // As a message of the peer says. A number that is too large is ignored.
  void is_consumed(uint64_t count) {
    if (count <= accepted_) consumed_ = std::max(consumed_, count);
  }
  // On a new connection: `landed` messages have landed at the peer, the others are posted again. Calls
  // visit(Outgoing&, has_landed) for each that was accepted and may not be complete.
  template <typename Visit>
  void resume(uint64_t landed, Visit&& visit) {
    const uint64_t first = posted_up_to_ > kSlots ? posted_up_to_ - kSlots + 1 : 1;
    for (uint64_t sequence = first; sequence <= accepted_; ++sequence)
      if (Outgoing* const out = find(sequence)) {
        out->posted = 0;
        visit(*out, sequence <= landed);
      }
    posted_up_to_ = std::min(landed, accepted_);
  }

  SendQueue queue;  // of the present queue pair

 private:
  Outgoing& at(uint64_t sequence) { return outgoing_[(sequence - 1) % kSlots]; }

  Channel* channel_ = nullptr;
  uint64_t accepted_ = 0;  // the last one
  uint64_t posted_up_to_ = 0;
  uint64_t consumed_ = 0;  // by the peer, as its messages say; the landing memory may say more
  std::array<Outgoing, kSlots> outgoing_;
};

}  // namespace ibcoll::verbs
