// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/shm/heap.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace ibcoll {
namespace {

constexpr std::chrono::seconds kPatience{2};  // the lock is held for less than a microsecond

}  // namespace

void Heap::prepare(uint64_t bytes) noexcept {
  pthread_mutexattr_t attributes;
  ::pthread_mutexattr_init(&attributes);
  ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  ::pthread_mutex_init(&mutex_, &attributes);
  ::pthread_mutexattr_destroy(&attributes);
  current_.store(0, std::memory_order_relaxed);
  lists_[0].count = 1;
  lists_[0].extents[0] = {0, bytes};
}

Status Heap::lock() noexcept {
  // pthread_mutex_timedlock() goes by a clock that can be set.
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  int code = ::pthread_mutex_trylock(&mutex_);
  for (; code == EBUSY && std::chrono::steady_clock::now() < deadline; code = ::pthread_mutex_trylock(&mutex_))
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  switch (code) {
    case EOWNERDEAD:  // its changes are all there, or not at all
      ::pthread_mutex_consistent(&mutex_);
      return {};
    case 0:
      return {};
    case EBUSY:
      return error(IBCOLL_ERR_TIMEOUT,
                   "shm: another rank of the node has held the lock of the node's heap for {} s; is one stopped?",
                   kPatience.count());
    default:
      return error(IBCOLL_ERR_SYSTEM, "shm: the lock of the node's heap: {}", std::strerror(code));
  }
}

void Heap::FreeList::insert(uint32_t at, Extent extent) noexcept {
  std::memmove(&extents[at + 1], &extents[at], (count++ - at) * sizeof(Extent));
  extents[at] = extent;
}

void Heap::FreeList::erase(uint32_t at) noexcept {
  std::memmove(&extents[at], &extents[at + 1], (--count - at) * sizeof(Extent));
}

Heap::FreeList& Heap::draft() noexcept {
  const FreeList& now = lists_[current_.load(std::memory_order_acquire)];
  FreeList& next = lists_[1 - current_.load(std::memory_order_relaxed)];
  next.count = now.count;
  std::memcpy(next.extents, now.extents, now.count * sizeof(Extent));
  return next;
}

Result<uint64_t> Heap::take(uint64_t bytes) noexcept {
  if (Status status = lock(); !status.ok()) return status;
  FreeList& free = draft();
  for (uint32_t i = 0; i < free.count; ++i) {
    Extent& extent = free.extents[i];
    if (extent.bytes < bytes) continue;
    const uint64_t offset = extent.offset;
    extent = {offset + bytes, extent.bytes - bytes};
    if (extent.bytes == 0) free.erase(i);
    commit();
    unlock();
    return offset;
  }
  unlock();
  return error(IBCOLL_ERR_NO_MEMORY,
               "shm: no {} bytes left in the node's heap; free teams, or lower IBCOLL_SHM_SLOT_BYTES", bytes);
}

void Heap::give_back(uint64_t offset, uint64_t bytes) noexcept {
  if (!lock().ok()) return;
  FreeList& free = draft();
  uint32_t i = 0;
  while (i < free.count && free.extents[i].offset < offset) ++i;
  const bool before = i > 0 && free.extents[i - 1].offset + free.extents[i - 1].bytes == offset;
  const bool after = i < free.count && free.extents[i].offset == offset + bytes;
  if (before && after) {
    free.extents[i - 1].bytes += bytes + free.extents[i].bytes;
    free.erase(i);
  } else if (before) {
    free.extents[i - 1].bytes += bytes;
  } else if (after) {
    free.extents[i] = {offset, free.extents[i].bytes + bytes};
  } else if (free.count < FreeList::kMostExtents) {
    free.insert(i, {offset, bytes});
  }
  commit();
  unlock();
}

}  // namespace ibcoll
