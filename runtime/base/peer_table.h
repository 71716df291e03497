// SPDX-License-Identifier: BSD-3-Clause
// Per-peer state, made when a peer is first talked to: open addressing by rank, so that consecutive ranks never
// collide. Entries live as long as the table and never move.
#pragma once

#include <cstdint>
#include <cstring>

#include "runtime/base/arena.h"

namespace ibcoll {

// T needs a member `int peer`.
template <typename T>
class PeerTable {
 public:
  // Forgets all entries; memory comes from `arena` from now on.
  void reset(Arena& arena) noexcept {
    arena_ = &arena;
    slots_ = nullptr;
    capacity_ = count_ = 0;
    first_ = last_ = nullptr;
  }

  T* find(int peer) const noexcept {
    if (!capacity_) return nullptr;
    for (uint32_t i = static_cast<uint32_t>(peer);; ++i) {
      T* const entry = slots_[i & (capacity_ - 1)];
      if (!entry || entry->peer == peer) return entry;
    }
  }

  // nullptr when memory is short.
  T* at(int peer) noexcept {
    if (T* const entry = find(peer)) return entry;
    if (2 * (count_ + 1) > capacity_ && !grow()) return nullptr;
    T* const entry = arena_->create<T>();
    if (!entry) return nullptr;
    entry->peer = peer;
    insert(entry);
    ++count_;
    (last_ ? last_->next_peer : first_) = entry;
    last_ = entry;
    return entry;
  }

  // In the order of first use; follow next_peer.
  T* first() const noexcept { return first_; }

 private:
  void insert(T* entry) noexcept {
    uint32_t i = static_cast<uint32_t>(entry->peer);
    while (slots_[i & (capacity_ - 1)]) ++i;
    slots_[i & (capacity_ - 1)] = entry;
  }

  bool grow() noexcept {
    const uint32_t capacity = capacity_ ? 4 * capacity_ : 32;
    auto** const slots = static_cast<T**>(arena_->allocate(capacity * sizeof(T*)));
    if (!slots) return false;
    std::memset(slots, 0, capacity * sizeof(T*));
    slots_ = slots;
    capacity_ = capacity;
    for (T* entry = first_; entry; entry = entry->next_peer) insert(entry);
    return true;
  }

  Arena* arena_ = nullptr;
  T** slots_ = nullptr;
  uint32_t capacity_ = 0;
  uint32_t count_ = 0;
  T* first_ = nullptr;
  T* last_ = nullptr;
};

}  // namespace ibcoll
