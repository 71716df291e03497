// SPDX-License-Identifier: BSD-3-Clause
// The future events of the simulated network, in the order of virtual time. Events of the same nanosecond come in the
// order in which they were scheduled, so that the order is total and a run can be repeated.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/transport/transport.h"

namespace ibcoll::sim {

struct QueuedEvent {
  enum Kind : uint8_t {
    kDepart,   // subject: message; its sender begins to send it
    kFlag,     // subject: index of a flag that is set now
    kArrive,   // subject: message; its first byte is at the receiver's link
    kDeliver,  // subject: message; its last byte is in memory
    kSent,     // subject: message; its source has been read
    kCredit,   // subject: pair; slots that the receiver has freed are usable again
    kWake,     // subject: rank
    kDeath,    // subject: rank
    kDetect    // subject: rank that detects it; other: the dead rank
  };
  Time time = 0;
  uint64_t order_and_kind = 0;
  uint32_t subject = 0;
  uint32_t other = 0;

  Kind kind() const noexcept { return static_cast<Kind>(order_and_kind & 0xff); }
  bool before(const QueuedEvent& that) const noexcept {
    return time != that.time ? time < that.time : order_and_kind < that.order_and_kind;
  }
};

// A heap with four children per node: half the depth of a binary one, and siblings share cache lines.
class EventQueue {
 public:
  bool empty() const noexcept { return heap_.empty(); }
  size_t size() const noexcept { return heap_.size(); }
  const QueuedEvent& front() const noexcept { return heap_.front(); }

  void push(Time time, QueuedEvent::Kind kind, uint32_t subject, uint32_t other = 0) {
    const QueuedEvent event{time, (++scheduled_ << 8) | kind, subject, other};
    heap_.push_back(event);
    size_t at = heap_.size() - 1;
    while (at > 0) {
      const size_t parent = (at - 1) / kChildren;
      if (!event.before(heap_[parent])) break;
      heap_[at] = heap_[parent];
      at = parent;
    }
    heap_[at] = event;
  }

  QueuedEvent pop() {
    const QueuedEvent first = heap_.front();
    const QueuedEvent last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
    return first;
  }

 private:
  static constexpr size_t kChildren = 4;

  void sink(const QueuedEvent& event) {
    const size_t size = heap_.size();
    size_t at = 0;
    for (size_t child = 1; child < size; child = at * kChildren + 1) {
      const size_t end = child + kChildren < size ? child + kChildren : size;
      size_t least = child;
      for (size_t i = child + 1; i < end; ++i) {
        if (heap_[i].before(heap_[least])) least = i;
      }
      if (!heap_[least].before(event)) break;
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = event;
  }

  std::vector<QueuedEvent> heap_;
  uint64_t scheduled_ = 0;
};

}  // namespace ibcoll::sim
