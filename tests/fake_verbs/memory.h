// SPDX-License-Identifier: BSD-3-Clause
// Memory that a device may use, and windows on it.
#pragma once

#include "tests/fake_verbs/fabric.h"

namespace ibcoll::fake_verbs {

struct Region : ibv_mr {
  bool holds(uint64_t address, uint64_t bytes) const {
    const auto begin = reinterpret_cast<uint64_t>(addr);
    return address >= begin && address - begin <= length && bytes <= length - (address - begin);
  }
  int access = 0;
  size_t windows = 0;  // bound on it
};

struct Window : ibv_mw {
  Region* region = nullptr;  // null: not bound
  uint64_t address = 0, bytes = 0;
  uint32_t key = 0;         // while bound
  uint32_t queue_pair = 0;  // whose peer may write
};

// The memory that the device may read from, or nullptr.
const std::byte* readable(const ibv_pd* domain, const ibv_sge& sge);
// The region that a Write from the peer of this queue pair would write to; nullptr: it has no right to.
Region* writable(const QueuePair& at, uint32_t key, uint64_t address, uint64_t bytes);

// IBV_WC_SUCCESS, or what the work request completes with.
ibv_wc_status bind(QueuePair& on, const ibv_send_wr& request);
ibv_wc_status invalidate(QueuePair& on, uint32_t key);
void unbind(Window& window);

}  // namespace ibcoll::fake_verbs
