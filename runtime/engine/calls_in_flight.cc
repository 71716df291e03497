// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/calls_in_flight.h"

#include <fmt/format.h>

#include <new>
#include <utility>

#include "runtime/engine/request.h"

namespace ibcoll {

CallsInFlight::CallsInFlight(uint32_t at_once)
    : mask_(2 * at_once - 1),
      requests_(std::make_unique<Request*[]>(2 * size_t{at_once})),
      records_(std::make_unique<CallRecord[]>(2 * size_t{at_once})) {}

uint32_t CallsInFlight::add(Request& request) noexcept {
  const uint32_t op = next_++;
  requests_[slot(op)] = &request;
  CallRecord& kept = records_[slot(op)];
  kept = request.record();
  kept.op = op;
  return op;
}

// The calls in flight have numbers from one that is as old as the room permits: twice the room has a place for each, and
// for the next one.
bool CallsInFlight::grow() noexcept {
  try {
    const uint32_t mask = 2 * mask_ + 1;
    auto requests = std::make_unique<Request*[]>(size_t{mask} + 1);
    auto records = std::make_unique<CallRecord[]>(size_t{mask} + 1);
    for (uint32_t i = 0; i <= mask_; ++i) {
      requests[records_[i].op & mask] = requests_[i];
      records[records_[i].op & mask] = records_[i];
    }
    mask_ = mask;
    requests_ = std::move(requests);
    records_ = std::move(records);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void CallsInFlight::remove(uint32_t op) noexcept {
  requests_[slot(op)] = nullptr;
  while (completed_ + 1 != next_ && !find(completed_ + 1)) ++completed_;
}

Request* CallsInFlight::find(uint32_t op) const noexcept {
  Request* const request = requests_[slot(op)];
  return request && request->exchange().op() == op ? request : nullptr;
}

int CallsInFlight::count() const noexcept {
  int count = 0;
  for_each([&](Request&) { ++count; });
  return count;
}

bool CallsInFlight::any_before(uint32_t op) const noexcept {
  for (uint32_t earlier = completed_ + 1; earlier != next_ && is_after(op, earlier); ++earlier)
    if (find(earlier)) return true;
  return false;
}

CallRecord CallsInFlight::record(uint32_t op) const noexcept {
  const CallRecord& record = records_[slot(op)];
  return record.op == op ? record : CallRecord{};
}

std::string CallsInFlight::describe(uint32_t op) const noexcept {
  const CallRecord call = record(op);
  if (call.op != 0) return call_text(call);
  return text_or("a collective", [&] { return fmt::format("collective #{} (ended)", op); });
}

}  // namespace ibcoll
