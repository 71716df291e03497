// SPDX-License-Identifier: BSD-3-Clause
// A record in the ring of a pair: length, note, payload; never split: a filler record skips to the start of the ring.
#pragma once

#include <cstdint>

#include "runtime/transport/transport.h"

namespace ibcoll::shm {

// 16-byte aligned. length: of the payload; kFiller: skip to the start of the ring.
struct Record {
  static constexpr uint64_t kFiller = ~uint64_t{0};
  uint64_t length;
  uint64_t unused;
  Note note;
  static uint64_t bytes(uint64_t payload) { return (sizeof(Record) + payload + 15) & ~uint64_t{15}; }
};

}  // namespace ibcoll::shm
