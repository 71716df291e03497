// SPDX-License-Identifier: BSD-3-Clause
// The work requests of one queue pair, by their position: they complete in the order in which they were posted, and one
// completion covers all before it. completed <= posted <= completed + kSendDepth.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/verbs/channel.h"

namespace ibcoll::verbs {

constexpr uint32_t kSendDepth = 128;
constexpr uint64_t kData = uint64_t{1} << 63;  // with the number of a message: a fragment of its put, not its slot

class SendQueue {
 public:
  uint64_t posted() const { return posted_; }
  uint64_t completed() const { return completed_; }
  uint32_t room() const { return kSendDepth - static_cast<uint32_t>(posted_ - completed_); }
  // All requests that asked for a completion have completed.
  bool drained() const { return posted_ == 0 || completed_ > signaled_; }

  // `message`: the number of the one that the request belongs to, perhaps with kData; 0: of none. True: it is to ask
  // for a completion, because the caller wants it or none of the last 16 did.
  bool add(uint64_t message, bool wanted) {
    const bool signals = wanted || posted_ - signaled_ >= kSignalPeriod;
    if (signals) signaled_ = posted_;
    message_[posted_++ % kSendDepth] = message;
    return signals;
  }
  // Up to this one; a completion carries the lower half of its position.
  void complete(uint32_t position) { completed_ = end_at(position); }
  // And calls done(number) for every slot among them that carried a message.
  template <typename Done>
  void complete(uint32_t position, Done&& done) {
    for (const uint64_t end = end_at(position); completed_ < end; ++completed_)
      if (const uint64_t message = message_[completed_ % kSendDepth]; message != 0 && (message & kData) == 0)
        done(message);
  }
  // 0: of none.
  uint64_t message_at(uint32_t position) const { return message_[position % kSendDepth] & ~kData; }

  // A bounce buffer that no request reads, or kBounces.
  size_t free_bounce() const {
    for (size_t i = 0; i < kBounces; ++i)
      if (completed_ >= bounced_[i]) return i;
    return kBounces;
  }
  // The request that was added last reads it.
  void reads_bounce(size_t i) { bounced_[i] = posted_; }

 private:
  static constexpr uint64_t kSignalPeriod = 16;
  uint64_t end_at(uint32_t position) const {
    return completed_ + static_cast<uint32_t>(position - static_cast<uint32_t>(completed_)) + 1;
  }

  std::array<uint64_t, kSendDepth> message_{};
  uint64_t posted_ = 0;
  uint64_t completed_ = 0;
  uint64_t signaled_ = 0;                     // the last request that asked for a completion
  std::array<uint64_t, kBounces> bounced_{};  // requests up to which the bounce buffers are in use
};

}  // namespace ibcoll::verbs
