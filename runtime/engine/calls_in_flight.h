// SPDX-License-Identifier: BSD-3-Clause
// The collectives of a team: the numbers that this rank gives them, those in flight, and records of the last ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/engine/call_numbers.h"
#include "runtime/engine/call_record.h"

namespace ibcoll {

class Request;

class CallsInFlight {
 public:
  // `at_once`: how many may be in flight before memory is asked for, a power of two. Of twice as many, the last ones,
  // records are kept.
  explicit CallsInFlight(uint32_t at_once);

  // Gives the request the next number, if there is memory for it: see make_room().
  uint32_t add(Request& request) noexcept;
  // A call of that number, which add() would give it, has ended before it was in flight. None is.
  void pass(const CallRecord& record) noexcept {
    CallRecord& kept = records_[slot(next_)];
    kept = record;
    kept.op = completed_ = next_++;
  }
  // Before add(). False: no memory.
  bool make_room() noexcept { return !requests_[slot(next_)] || grow(); }
  void remove(uint32_t op) noexcept;

  // nullptr: it is not in flight.
  Request* find(uint32_t op) const noexcept;
  // It is in flight.
  Request& at(uint32_t op) const noexcept { return *requests_[slot(op)]; }
  // This rank has begun the call; it may have ended.
  bool begun(uint32_t op) const noexcept { return is_after(next_, op); }
  uint32_t next() const noexcept { return next_; }
  // All calls up to this one have ended.
  uint32_t completed() const noexcept { return completed_; }
  bool idle() const noexcept { return completed_ + 1 == next_; }
  int count() const noexcept;
  bool any_before(uint32_t op) const noexcept;
  // In the order of their numbers. Calls may end meanwhile.
  template <typename F>
  void for_each(F f) const {
    for (uint32_t op = completed_ + 1; op != next_; ++op)
      if (Request* const request = find(op)) f(*request);
  }

  // For questions and errors, of one of the last calls; its op is 0 where it is not known any more.
  CallRecord record(uint32_t op) const noexcept;
  // How many are known, at least.
  uint32_t kept_records() const noexcept { return mask_ + 1; }
  // "allgatherv (ring) #12 of 8 bytes"
  std::string describe(uint32_t op) const noexcept;

 private:
  size_t slot(uint32_t op) const noexcept { return op & mask_; }
  bool grow() noexcept;

  uint32_t next_ = 1;
  uint32_t completed_ = 0;
  uint32_t mask_;
  // Circular, mask_ + 1 of each, indexed by op.
  std::unique_ptr<Request*[]> requests_;  // nullptr: the call has ended
  std::unique_ptr<CallRecord[]> records_;
};

}  // namespace ibcoll
