// SPDX-License-Identifier: BSD-3-Clause
// The collectives of a team use its node window one after another, in the order in which they were started. Each takes
// a ticket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ibcoll {

class WindowQueue {
 public:
  // At most `tickets` are taken before the first of them is returned. Throws std::bad_alloc.
  void reserve(int tickets) { returned_.reserve(static_cast<size_t>(tickets)); }
  uint64_t take_ticket() noexcept { return next_++; }
  bool is_first(uint64_t ticket) const noexcept { return ticket == first_; }
  // A collective that moves nothing ends without a step, perhaps before those that were started earlier.
  void return_ticket(uint64_t ticket) noexcept {
    if (ticket != first_) {
      returned_.push_back(ticket);
      return;
    }
    do {
      ++first_;
    } while (std::erase(returned_, first_) > 0);
  }

 private:
  uint64_t first_ = 0;
  uint64_t next_ = 0;
  std::vector<uint64_t> returned_;  // before they were first
};

}  // namespace ibcoll
