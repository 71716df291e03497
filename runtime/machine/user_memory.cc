// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/user_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace ibcoll {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;

std::mutex lock;
using AllocatedBlocks = std::map<const std::byte*, size_t>;
AllocatedBlocks& blocks() {
  static auto* const all = new AllocatedBlocks();  // outlives static destruction
  return *all;
}
using FreeWatchers = std::vector<std::pair<FreeWatcher, void*>>;
FreeWatchers& watchers() {
  static auto* const all = new FreeWatchers();
  return *all;
}

}  // namespace

Result<void*> allocate_memory(size_t bytes) {
  const size_t unit = bytes >= kHugePage ? kHugePage : kPage;
  const size_t size = (bytes + unit - 1) / unit * unit;
  void* const memory =
      size < bytes ? MAP_FAILED : ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return error(IBCOLL_ERR_NO_MEMORY, "ibcoll_mem_alloc: {} bytes: {}", bytes,
                 std::strerror(size < bytes ? EOVERFLOW : errno));
  if (unit == kHugePage) ::madvise(memory, size, MADV_HUGEPAGE);
  const std::lock_guard guard(lock);
  try {
    blocks()[static_cast<std::byte*>(memory)] = size;
  } catch (const std::bad_alloc&) {
    ::munmap(memory, size);
    return error(IBCOLL_ERR_NO_MEMORY, "ibcoll_mem_alloc: {} bytes: no memory to remember them", bytes);
  }
  return memory;
}

Status free_memory(void* memory) {
  if (!memory) return {};
  const std::lock_guard guard(lock);
  const auto found = blocks().find(static_cast<std::byte*>(memory));
  if (found == blocks().end())
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_mem_free: {} is not memory of ibcoll_mem_alloc, or freed already",
                 memory);
  for (const auto& [watcher, context] : watchers()) watcher(context, memory, found->second);
  ::munmap(memory, found->second);
  blocks().erase(found);
  return {};
}

bool is_allocated(std::span<const std::byte> memory) noexcept {
  const std::lock_guard guard(lock);
  auto block = blocks().upper_bound(memory.data());
  if (block == blocks().begin()) return false;
  --block;
  const auto offset = static_cast<size_t>(memory.data() - block->first);
  return offset <= block->second && memory.size() <= block->second - offset;
}

void watch_frees(FreeWatcher watcher, void* context) {
  const std::lock_guard guard(lock);
  watchers().emplace_back(watcher, context);
}

void unwatch_frees(FreeWatcher watcher, void* context) noexcept {
  const std::lock_guard guard(lock);
  std::erase(watchers(), std::pair(watcher, context));
}

}  // namespace ibcoll
