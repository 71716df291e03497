// SPDX-License-Identifier: BSD-3-Clause
// The entries of a table of the device that this process uses. What it gives back it uses again, before it takes one
// that nobody has used; those of a process that has ended are not used again.
#pragma once

#include <mutex>
#include <vector>

#include "tools/rdma_in_memory/file.h"

namespace ibcoll::rdma_in_memory {

class Indices {
 public:
  Indices(std::atomic<uint32_t> Layout::*used, uint32_t most) : used_(used), most_(most) {}

  // From 1; 0: none is left.
  uint32_t take() {
    const std::lock_guard guard(mutex_);
    if (!free_.empty()) {
      const uint32_t index = free_.back();
      free_.pop_back();
      return index;
    }
    std::atomic<uint32_t>& used = File::get().layout().*used_;
    const uint32_t index = used.fetch_add(1) + 1;
    if (index < most_) return index;
    used.fetch_sub(1);
    return 0;
  }
  void give_back(uint32_t index) {
    const std::lock_guard guard(mutex_);
    free_.push_back(index);
  }

 private:
  std::atomic<uint32_t> Layout::*used_;
  uint32_t most_;
  std::mutex mutex_;
  std::vector<uint32_t> free_;
};

}  // namespace ibcoll::rdma_in_memory
