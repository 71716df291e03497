// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

namespace ibcoll::rdma_in_memory {

// In memory that processes share or that one has alone, held for some instructions. Zero bytes are a lock that is free.
// Its holder may die: then who waits for it takes it.
class Lock {
 public:
  void lock() {
    if (!try_lock()) wait();
  }
  bool try_lock();
  void unlock() { holder_.store(0, std::memory_order_release); }

 private:
  void wait();

  std::atomic<uint32_t> holder_{0};  // number of the process
};

// For loops that wait for another process. `round` counts from 0; true now and then: time to look whether that lives.
bool pause_in_loop(uint32_t round);

}  // namespace ibcoll::rdma_in_memory
