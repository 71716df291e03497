// SPDX-License-Identifier: BSD-3-Clause
// The data that this library keeps about requests, by their handles, and tags for them.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "runtime/under_mpi/core/handle.h"

namespace ibcoll::under_mpi {

template <typename Value>
class HandleMap {
 public:
  int take_tag() {
    const std::lock_guard guard(lock_);
    const auto free = std::find(tags_.begin(), tags_.end(), false);
    const auto tag = static_cast<int>(free - tags_.begin());
    if (free == tags_.end()) tags_.push_back(false);
    tags_[static_cast<size_t>(tag)] = true;
    return tag;
  }
  void give_back_tag(int tag) noexcept {
    const std::lock_guard guard(lock_);
    tags_[static_cast<size_t>(tag)] = false;
  }
  void insert(MPI_Request handle, Value* value) {
    const std::lock_guard guard(lock_);
    of_handles_.emplace(key_of(handle), value);
    any_ = true;
  }
  // NULL: it is not one of these.
  Value* find(MPI_Request handle) noexcept {
    if (!any_.load(std::memory_order_relaxed)) return nullptr;
    const std::lock_guard guard(lock_);
    const auto found = of_handles_.find(key_of(handle));
    return found != of_handles_.end() ? found->second : nullptr;
  }
  void erase(MPI_Request handle) noexcept {
    const std::lock_guard guard(lock_);
    of_handles_.erase(key_of(handle));
    any_ = !of_handles_.empty();
  }

 private:
  std::mutex lock_;
  std::atomic<bool> any_{false};
  std::vector<bool> tags_;  // which are taken
  std::unordered_map<uint64_t, Value*> of_handles_;
};

}  // namespace ibcoll::under_mpi
