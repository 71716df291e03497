// SPDX-License-Identifier: BSD-3-Clause
// Credit for the eager messages between this rank and one peer in one collective, in both directions: a rank sends at
// most `limit` of them that its peer has not taken. Over all collectives: runtime/engine/team_credit.h.
#pragma once

#include <cstdint>

namespace ibcoll {

class EagerCredit {
 public:
  // ---- sending

  bool may_send(uint32_t limit) const noexcept { return sent_ - consumed_ < limit; }
  void sent() noexcept { ++sent_; }
  // The peer has reported that it has taken this number of messages.
  void consumed(uint32_t messages) noexcept { consumed_ = messages; }

  // ---- receiving

  void took(uint64_t bytes) noexcept {
    ++taken_;
    bytes_taken_ += bytes;
  }
  // The message was spilled: it counts over all collectives only.
  void took_spilled(uint64_t bytes) noexcept { spilled_taken_ += bytes; }
  uint32_t taken() const noexcept { return taken_; }
  uint64_t bytes_taken() const noexcept { return bytes_taken_; }
  uint64_t spilled_taken() const noexcept { return spilled_taken_; }
  // The peer needs a report: half of its credit is used up.
  bool due(uint32_t limit) const noexcept { return taken_ - reported_ >= limit / 2; }
  // A report of taken() has left.
  void reported() noexcept { reported_ = taken_; }

 private:
  uint32_t sent_ = 0;
  uint32_t consumed_ = 0;  // of these by the peer, as far as it has reported
  uint32_t taken_ = 0;
  uint32_t reported_ = 0;
  uint64_t bytes_taken_ = 0;
  uint64_t spilled_taken_ = 0;
};

}  // namespace ibcoll
