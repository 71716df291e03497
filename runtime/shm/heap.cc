// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/shm/heap.h"

#include <unistd.h>

#include <cstring>
#include <optional>

#include "runtime/machine/process_watch.h"
#include "runtime/machine/wait_loop.h"

namespace ibcoll::shm {
namespace {

constexpr uint64_t kLockTimeoutNs = 2'000'000'000;  // the lock is held for less than a microsecond
constexpr WaitStrategy kForTheLock = WaitStrategy::sleeping(20'000);
constexpr int kPollsPerOwnerCheck = 50;  // of the lock, before it is checked whether its owner lives

constexpr uint64_t word_of(const ProcessId& id) noexcept {
  return static_cast<uint64_t>(id.pid) << 32 | static_cast<uint32_t>(id.start);
}

// The word of this process, whether it was forked or not.
uint64_t own_word() noexcept {
  static uint64_t word = 0;
  if (word >> 32 != static_cast<uint64_t>(::getpid())) word = word_of(ProcessId::own());
  return word;
}

// True only when that is certain: if a living owner lost the lock while it writes, the list would be spoiled.
bool has_ended(uint64_t owner) noexcept {
  const auto pid = static_cast<int64_t>(owner >> 32);
  const std::optional<uint64_t> start = ProcessId::start_of(pid);
  const bool owner_knew_its_start = static_cast<uint32_t>(owner) != 0;
  return start && (*start == 0 || (owner_knew_its_start && word_of({0, pid, *start}) != owner));
}

}  // namespace

void Heap::prepare(uint64_t bytes, uint64_t unit) noexcept {
  owner_.store(0, std::memory_order_relaxed);
  current_.store(0, std::memory_order_relaxed);
  bytes_ = bytes;
  unit_ = unit;
  lists_[0].count = 1;
  lists_[0].extents[0] = {0, bytes};
}

Status Heap::lock() noexcept {
  uint64_t owner = 0;
  int looks = 0;
  const auto taken = [&] {
    owner = 0;
    if (owner_.compare_exchange_strong(owner, own_word(), std::memory_order_acquire)) return true;
    // The changes of an owner that has ended are complete, or were not made at all.
    return ++looks % kPollsPerOwnerCheck == 0 && has_ended(owner) &&
           owner_.compare_exchange_strong(owner, own_word(), std::memory_order_acquire);
  };
  if (WaitLoop(kForTheLock, Deadline::after_ns(kLockTimeoutNs)).until(taken)) return {};
  return error(IBCOLL_ERR_TIMEOUT, "shm: process {} has held the lock of the node's heap for {} s; is it stopped?",
               owner >> 32, kLockTimeoutNs / 1'000'000'000);
}

void Heap::unlock() noexcept {
  uint64_t mine = own_word();
  owner_.compare_exchange_strong(mine, 0, std::memory_order_release);
}

void Heap::FreeList::insert(uint32_t at, Extent extent) noexcept {
  std::memmove(&extents[at + 1], &extents[at], (count++ - at) * sizeof(Extent));
  extents[at] = extent;
}

void Heap::FreeList::erase(uint32_t at) noexcept {
  std::memmove(&extents[at], &extents[at + 1], (--count - at) * sizeof(Extent));
}

Heap::FreeList* Heap::draft() noexcept {
  const uint32_t current = current_.load(std::memory_order_acquire);
  if (current > 1 || unit_ == 0) return nullptr;
  const FreeList& now = lists_[current];
  FreeList& next = lists_[1 - current];
  const uint32_t count = now.count;
  if (count > FreeList::kMostExtents) return nullptr;
  next.count = count;
  std::memcpy(next.extents, now.extents, count * sizeof(Extent));
  uint64_t end = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const Extent& extent = next.extents[i];
    if (extent.offset < end || extent.offset > bytes_ || extent.bytes > bytes_ - extent.offset) return nullptr;
    end = extent.offset + extent.bytes;
  }
  return &next;
}

Status Heap::spoiled() const noexcept {
  return error(
      IBCOLL_ERR_SYSTEM,
      "shm: the list of the node's heap is spoiled: another process has written to the node's shared memory, or this "
      "program out of its own; run the program with a memory checker");
}

Result<uint64_t> Heap::take(uint64_t bytes) noexcept {
  if (Status status = lock(); !status.ok()) return status;
  FreeList* const free = draft();
  if (!free) {
    unlock();
    return spoiled();
  }
  for (uint32_t i = 0; i < free->count; ++i) {
    Extent& extent = free->extents[i];
    const uint64_t into = extent.offset % unit_;
    const uint64_t skipped = into > 0 && into + bytes > unit_ ? unit_ - into : 0;
    if (extent.bytes < skipped || extent.bytes - skipped < bytes) continue;
    const uint64_t offset = extent.offset + skipped;
    const Extent rest{offset + bytes, extent.bytes - skipped - bytes};
    if (skipped > 0 && rest.bytes > 0 && free->count == FreeList::kMostExtents) continue;
    if (skipped > 0) {
      extent.bytes = skipped;
      if (rest.bytes > 0) free->insert(i + 1, rest);
    } else if (rest.bytes > 0) {
      extent = rest;
    } else {
      free->erase(i);
    }
    commit();
    unlock();
    return offset;
  }
  unlock();
  return error(IBCOLL_ERR_NO_MEMORY,
               "shm: no {} bytes left in the node's heap; free teams, or lower IBCOLL_SHM_SLOT_BYTES", bytes);
}

uint64_t Heap::used() noexcept {
  if (!lock().ok()) return 0;
  const FreeList* const free = draft();
  uint64_t bytes = free ? bytes_ : 0;
  for (uint32_t i = 0; free && i < free->count; ++i) bytes -= free->extents[i].bytes;
  unlock();
  return bytes;
}

void Heap::give_back(uint64_t offset, uint64_t bytes) noexcept {
  if (!lock().ok()) return;
  FreeList* const free = draft();
  if (!free) return unlock();
  uint32_t i = 0;
  while (i < free->count && free->extents[i].offset < offset) ++i;
  const bool before = i > 0 && free->extents[i - 1].offset + free->extents[i - 1].bytes == offset;
  const bool after = i < free->count && free->extents[i].offset == offset + bytes;
  if (before && after) {
    free->extents[i - 1].bytes += bytes + free->extents[i].bytes;
    free->erase(i);
  } else if (before) {
    free->extents[i - 1].bytes += bytes;
  } else if (after) {
    free->extents[i] = {offset, free->extents[i].bytes + bytes};
  } else if (free->count < FreeList::kMostExtents) {
    free->insert(i, {offset, bytes});
  }
  commit();
  unlock();
}

}  // namespace ibcoll::shm
