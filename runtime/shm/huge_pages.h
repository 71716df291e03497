// SPDX-License-Identifier: BSD-3-Clause
// Replaces small pages of shared memory by huge ones: madvise MADV_COLLAPSE, Linux 6.1. The kernel waits in it until
// every processor of the machine has run a work item (lru_add_drain_all). Under heavy load that takes seconds, so no
// rank waits for it: a thread makes the calls, and ends with the last one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace ibcoll::shm {

class HugePages {
 public:
  HugePages() = default;
  HugePages(const HugePages&) = delete;
  HugePages& operator=(const HugePages&) = delete;
  ~HugePages() { end(); }
  // Waits for the call that is being made, and makes no more.
  void end() noexcept;

  // A huge page for [memory, memory + bytes), which begins at a multiple of `bytes` and stays mapped until
  // end(). `made` is set then. Where there is no memory or no thread, small pages stay.
  void make(std::byte* memory, uint64_t bytes, std::atomic<bool>& made) noexcept;

 private:
  struct Wanted {
    std::byte* memory;
    uint64_t bytes;
    std::atomic<bool>* made;
  };
  void run() noexcept;

  std::mutex lock_;  // of the next three
  std::vector<Wanted> wanted_;
  bool running_ = false;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace ibcoll::shm
