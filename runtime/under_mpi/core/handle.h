// SPDX-License-Identifier: BSD-3-Clause
// Handles of MPI as keys: a pointer in one MPI, an int in another.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>

namespace ibcoll::under_mpi {

template <typename Handle>
uint64_t key_of(Handle handle) noexcept {
  static_assert(sizeof handle <= sizeof(uint64_t));
  uint64_t key = 0;
  std::memcpy(&key, &handle, sizeof handle);
  return key;
}

// A table of handles that are never freed. Looking costs a few nanoseconds and no lock. Entries are kept for good.
template <typename Value, size_t kSlots>
class HandleTable {
 public:
  const Value* find(uint64_t key) const noexcept {
    for (size_t i = slot_of(key);; i = (i + 1) % kSlots) {
      const Entry* entry = slots_[i].load(std::memory_order_acquire);
      if (entry == nullptr) return nullptr;
      if (entry->key == key) return &entry->value;
    }
  }

  // The value of the key: this one, or the one that is there. NULL: the table is full.
  const Value* insert(uint64_t key, const Value& value) {
    const std::lock_guard guard(lock_);
    if (const Value* there = find(key)) return there;
    if (used_ + 1 >= kSlots) return nullptr;  // a free slot ends each search
    size_t i = slot_of(key);
    while (slots_[i].load(std::memory_order_relaxed) != nullptr) i = (i + 1) % kSlots;
    auto* entry = new Entry{key, value};
    slots_[i].store(entry, std::memory_order_release);
    ++used_;
    return &entry->value;
  }

 private:
  struct Entry {
    uint64_t key;
    Value value;
  };
  static size_t slot_of(uint64_t key) noexcept { return (key * 0x9E3779B97F4A7C15u >> 32) % kSlots; }

  std::array<std::atomic<const Entry*>, kSlots> slots_{};
  std::mutex lock_;
  size_t used_ = 0;
};

}  // namespace ibcoll::under_mpi
