// SPDX-License-Identifier: BSD-3-Clause
// Memory that the device may read or write, and the windows through which one peer may write to a part of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/transport.h"
#include "runtime/verbs/objects.h"

namespace ibcoll::verbs {

// Empty: the device could not register the memory.
struct Registration {
  ibv_mr* region = nullptr;
  explicit operator bool() const { return region != nullptr; }
};

class Registrations {
 public:
  explicit Registrations(ibv_pd* domain) : domain_(domain) {}
  // The registration covers the range, perhaps more.
  Registration acquire(std::span<std::byte> memory);
  void release(Registration& registration);
  uint64_t failed() const { return failed_; }
  uint64_t made() const { return made_; }

 private:
  ibv_pd* domain_;
  uint64_t failed_ = 0, made_ = 0;
};

// A memory window and the last key that was given out for it. ibv_mw.rkey stays what the device knows until the next bind.
struct Window {
  MemoryWindow handle;
  uint32_t key = 0;
};

// The low bits of an exposure's number are its place in the table; the others tell it from earlier ones in that place.
constexpr uint32_t kExposureIndex = 0xffff;

// The right of one peer to write to exactly one range.
struct Exposure {
  uint32_t number = 0;
  int peer = -1;  // -1: free
  std::span<std::byte> memory;
  Registration registration;
  Window window;       // empty where the device has none: then the region is exactly this range
  MemoryRegion exact;  // only without windows
  bool bound = false;  // on the peer's present queue pair
  uint32_t key = 0;
};

}  // namespace ibcoll::verbs
