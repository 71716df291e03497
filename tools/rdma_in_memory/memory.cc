// SPDX-License-Identifier: BSD-3-Clause
#include "tools/rdma_in_memory/memory.h"

#include <sys/uio.h>

#include <algorithm>
#include <cstring>

#include "tools/rdma_in_memory/file.h"
#include "tools/rdma_in_memory/model.h"

namespace ibcoll::rdma_in_memory {
namespace {

// With the promise of order, the last word of a message becomes visible last.
void copy(std::byte* to, const std::byte* from, size_t bytes) {
  if (!model().in_order || bytes < 2 * sizeof(uint64_t)) {
    model().copy_unordered(to, from, bytes);
    return;
  }
  const size_t before = bytes - sizeof(uint64_t);
  std::memcpy(to, from, before);
  uint64_t last = 0;
  std::memcpy(&last, from + before, sizeof last);
  std::atomic_thread_fence(std::memory_order_release);
  *reinterpret_cast<volatile uint64_t*>(to + before) = last;
}

// Calls copy(memory, done, bytes) for each part of a target that lies in one chunk. False: not all can be mapped.
template <class Copy>
bool in_chunks(uint64_t offset, size_t bytes, Copy&& copy_part) {
  for (size_t done = 0; done < bytes;) {
    std::byte* const memory = File::get().at(offset + done);
    if (memory == nullptr) return false;
    const size_t part = std::min<size_t>(bytes - done, File::kChunk - (offset + done) % File::kChunk);
    copy_part(memory, done, part);
    done += part;
  }
  return true;
}

using VmCall = ssize_t(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

bool by_system_call(VmCall* call, const Target& target, uint64_t offset, void* own, size_t bytes) {
  const iovec here{own, bytes}, there{reinterpret_cast<void*>(target.address + offset), bytes};
  const int pid = File::get().layout().process[target.process].pid.load();
  return call(pid, &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
}

}  // namespace

bool find_target(uint32_t key, uint64_t address, uint64_t bytes, uint32_t access, const SharedQueuePair& at,
                 Target& target) {
  const uint32_t index = key >> 8;
  if (index == 0 || index >= kRegions) return false;
  const SharedRegion& region = File::get().layout().region[index];
  if (region.key.load(std::memory_order_acquire) != key || region.process != at.process || region.domain != at.domain ||
      (access & ~region.access) != 0)
    return false;
  if (address < region.address || bytes > region.bytes || address - region.address > region.bytes - bytes) return false;
  if (region.queue_pair != 0 && region.queue_pair != at.number.load(std::memory_order_relaxed)) return false;
  target = {region.process, region.in_file != 0, address};
  return true;
}

bool write_to(const Target& target, uint64_t offset, const void* from, size_t bytes) {
  const auto* const source = static_cast<const std::byte*>(from);
  if (target.process == File::get().process()) {
    copy(reinterpret_cast<std::byte*>(target.address + offset), source, bytes);
    return true;
  }
  if (!target.in_file) return by_system_call(::process_vm_writev, target, offset, const_cast<void*>(from), bytes);
  return in_chunks(window_of(target.process, target.address + offset), bytes,
                   [&](std::byte* to, size_t done, size_t part) { copy(to, source + done, part); });
}

bool read_from(const Target& target, uint64_t offset, void* to, size_t bytes) {
  auto* const goal = static_cast<std::byte*>(to);
  if (target.process == File::get().process()) {
    std::memcpy(goal, reinterpret_cast<const std::byte*>(target.address + offset), bytes);
    return true;
  }
  if (!target.in_file) return by_system_call(::process_vm_readv, target, offset, to, bytes);
  return in_chunks(window_of(target.process, target.address + offset), bytes,
                   [&](const std::byte* from, size_t done, size_t part) { std::memcpy(goal + done, from, part); });
}

}  // namespace ibcoll::rdma_in_memory
