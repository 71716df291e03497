// SPDX-License-Identifier: BSD-3-Clause
// The first page of a node window. It has memory from the start, and says how much of the rest has, which ranks use the
// window, and which have failed. Its tag differs from that of any other team that had the same memory.
#pragma once

#include <atomic>
#include <cstdint>

namespace ibcoll {

struct WindowControl {
  enum State : uint64_t { kUnused = 0, kMaking = 1, kUsed = 2, kReleased = 3 };
  enum Presence : uint64_t { kAwaited = 0, kThere = 1, kGone = 2 };
  struct Member {
    std::atomic<int32_t> failure;    // a status; 0: none
    std::atomic<uint64_t> presence;  // tag << 2 | Presence
  };

  std::atomic<uint64_t> state;       // tag << 2 | State
  std::atomic<uint64_t> backed;      // bytes of each area that have memory
  std::atomic<uint64_t> called_off;  // not 0: ranks that have not come must not come any more
  Member members[];

  // The size of this memory: one page, or more where there are many ranks.
  static uint64_t bytes(int ranks) noexcept {
    constexpr uint64_t kPage = 4096;
    return (sizeof(WindowControl) + static_cast<uint64_t>(ranks) * sizeof(Member) + kPage - 1) / kPage * kPage;
  }
};

}  // namespace ibcoll
