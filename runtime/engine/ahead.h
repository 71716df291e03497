// SPDX-License-Identifier: BSD-3-Clause
// How far a rank may run ahead of a peer with eager messages: in how many collectives that the peer has not completed,
// with how many bytes in these, and with how many that it has spilled. That bounds what the peer keeps for this rank.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "runtime/engine/call_numbers.h"

namespace ibcoll {

// The collectives in which eager messages went to one peer, oldest first, in a few groups: a group counts as a whole
// until the peer has completed the last one of it. A group takes no more collectives once it has an eighth of either
// limit. Else what the peer has completed could still count as half of a limit, and a sender that the peer has nothing to
// report to would have to ask for credit.
class Ahead {
 public:
  static constexpr uint32_t kGroups = 8;
  struct Limits {
    uint32_t collectives = 1;
    uint64_t bytes = 1;
  };

  // True when the first eager message of collective `op` may go to the peer now; then `op` is counted. Only older
  // collectives hold a younger one back, so that the oldest can always continue, whatever was sent before.
  bool begin(uint32_t op, const Limits& limits) noexcept {
    // The peer has not completed what still sends to it. Before it has reported that is all that is known of it: the
    // first message may be of a younger call than the second one, and 0 half of all numbers away.
    if (begun_ == 0 || !is_after(op, completed_)) completed_ = op - 1;
    uint32_t older = 0;
    uint64_t bytes = 0;
    for (const Group& g : groups_)
      if (open(g) && is_after(op, g.last)) older += g.count, bytes += g.bytes;
    if (older >= limits.collectives || bytes >= limits.bytes) return false;
    count(op, limits);
    return true;
  }
  // Bytes of an eager message left, of collective `op`, which was counted.
  void sent(uint32_t op, uint64_t bytes) noexcept { group_of(op).bytes += bytes; }
  // The same of bytes that were spilled.
  void spilled(uint32_t op, uint64_t bytes) noexcept { group_of(op).spilled += bytes; }
  // Bytes that were spilled in collectives that the peer has not completed.
  uint64_t spilled() const noexcept {
    uint64_t bytes = 0;
    for (const Group& g : groups_)
      if (open(g)) bytes += g.spilled;
    return bytes;
  }
  // The peer has completed all collectives up to `op`. True: that is news.
  bool completed(uint32_t op) noexcept {
    if (!is_after(op, completed_)) return false;
    completed_ = op;
    return true;
  }

 private:
  struct Group {
    uint64_t bytes = 0;
    uint64_t spilled = 0;
    uint32_t last = 0;
    uint32_t count = 0;
  };
  bool open(const Group& g) const noexcept { return g.count > 0 && is_after(g.last, completed_); }
  Group& newest() noexcept { return groups_[(begun_ - 1) % kGroups]; }
  // Several collectives in flight send by turns. The group that is complete first of those that are not complete before
  // `op`; it holds `op`, unless that had to join a younger one.
  Group& group_of(uint32_t op) noexcept {
    Group* found = &newest();
    if (found->last == op) return *found;
    for (Group& g : groups_)
      if (open(g) && !is_after(op, g.last) && (is_after(op, found->last) || is_after(found->last, g.last))) found = &g;
    return *found;
  }

  bool closed(const Group& g, const Limits& limits) const noexcept {
    return g.count >= std::max<uint32_t>(1, limits.collectives / kGroups) || g.bytes >= limits.bytes / kGroups ||
           g.spilled > 0;
  }

  void count(uint32_t op, const Limits& limits) noexcept {
    if (begun_ > 0 && !open(newest())) {
      newest() = {.last = op, .count = 1};
      return;
    }
    Group* const next = &groups_[begun_ % kGroups];
    const bool joins = begun_ > 0 && !closed(newest(), limits) && is_after(op, newest().last);
    if (!joins && !open(*next)) {
      ++begun_;
      *next = {.last = op, .count = 1};
      return;
    }
    Group& g = newest();
    if (is_after(op, g.last)) g.last = op;
    ++g.count;
  }

  std::array<Group, kGroups> groups_;
  uint32_t begun_ = 0;      // groups
  uint32_t completed_ = 0;  // by the peer, as far as it has reported
};

}  // namespace ibcoll
