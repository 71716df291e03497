// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/calls_in_flight.h"

#include <fmt/format.h>

#include <new>
#include <utility>

#include "runtime/engine/request.h"

namespace ibcoll {

CallsInFlight::CallsInFlight() : requests_(64, nullptr) {}

uint32_t CallsInFlight::add(Request& request) noexcept {
  const uint32_t op = next_++;
  requests_[slot(op)] = &request;
  CallRecord& kept = records_[op % kKeptRecords];
  kept = request.record();
  kept.op = op;
  return op;
}

// One of the calls in flight is that old.
bool CallsInFlight::grow() noexcept {
  try {
    while (requests_[slot(next_)]) {
      std::vector<Request*> larger(2 * requests_.size(), nullptr);
      for (Request* const r : requests_)
        if (r) larger[r->exchange().op() & (larger.size() - 1)] = r;
      requests_ = std::move(larger);
    }
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
  const Request* const request = find(op);
  CallRecord call = request ? request->record() : records_[op % kKeptRecords];
  if (request) call.op = op;
  return call.op == op ? call : CallRecord{};
}

std::string CallsInFlight::describe(uint32_t op) const noexcept {
  const CallRecord call = record(op);
  if (call.op != 0) return call_text(call);
  return text_or("a collective", [&] { return fmt::format("collective #{} (ended)", op); });
}

}  // namespace ibcoll
