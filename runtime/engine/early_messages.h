// SPDX-License-Identifier: BSD-3-Clause
// Notes that came before the collective, or the announcement, that they belong to. Their memory is kept for later ones.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/buffer.h"
#include "runtime/base/intrusive_queue.h"
#include "runtime/transport/transport.h"

namespace ibcoll {

// The payload follows.
struct EarlyMessage {
  EarlyMessage* next;
  Note note;
  int peer;  // team rank
  uint32_t bytes;
  uint32_t capacity;
  ConstBytes payload() const noexcept { return {reinterpret_cast<const std::byte*>(this + 1), bytes}; }
};

using EarlyList = IntrusiveQueue<EarlyMessage>;  // in the order in which they came

class EarlyMessages {
 public:
  static constexpr uint32_t kSmall = 64;  // payload of the small kind

  // Most payloads are of at most `usual_bytes`.
  explicit EarlyMessages(uint64_t usual_bytes) noexcept : usual_bytes_(usual_bytes) {}
  ~EarlyMessages();
  EarlyMessages(const EarlyMessages&) = delete;
  EarlyMessages& operator=(const EarlyMessages&) = delete;

  // A copy, to be recycled; nullptr: no memory.
  EarlyMessage* copy(int peer, const Note& note, ConstBytes payload) noexcept;
  void recycle(EarlyMessage* message) noexcept;
  void recycle(EarlyList& list) noexcept {
    while (list.head) recycle(list.pop());
  }

 private:
  uint64_t usual_bytes_;
  EarlyMessage* small_ = nullptr;
  EarlyMessage* large_ = nullptr;
};

}  // namespace ibcoll
