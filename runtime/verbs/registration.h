// SPDX-License-Identifier: BSD-3-Clause
// Memory that the device may read or write, and the windows through which one peer may write to a part of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/registration_cache/watched_cache.h"
#include "runtime/transport/transport.h"
#include "runtime/verbs/objects.h"

namespace ibcoll::verbs {

// Pins whole pages for local use, and for windows to be bound on them where the device has such: no peer may write to
// them by these keys.
class Registrar final : public ibcoll::Registrar {
 public:
  Registrar(ibv_pd* domain, bool windows) : domain_(domain), windows_(windows) {}
  Result<void*> pin(std::span<std::byte> pages) override;
  void unpin(void* handle) override { MemoryRegion(static_cast<ibv_mr*>(handle)).reset(); }

 private:
  ibv_pd* domain_;
  bool windows_;
};

inline ibv_mr* region_of(const Registration& registration) { return static_cast<ibv_mr*>(registration.handle()); }

// A memory window and the last key that was given out for it. ibv_mw.rkey stays what the device knows until the next
// bind.
struct Window {
  MemoryWindow handle;
  uint32_t key = 0;
};

// The low bits of an exposure's number are its index in the table; the others differ from those of earlier exposures
// with that index.
constexpr uint32_t kExposureIndex = 0xffff;

// The right of one peer to write to exactly one range.
struct Exposure {
  uint32_t number = 0;
  int peer = -1;  // -1: free
  std::span<std::byte> memory;
  Registration* registration = nullptr;  // where windows are exact
  Window window;                         // empty where the device has none: then the region is exactly this range
  MemoryRegion exact;                    // elsewhere
  bool bound = false;                    // on the peer's present queue pair
  uint32_t key = 0;
  uint32_t advertised = 0;  // the key at first
};

}  // namespace ibcoll::verbs
