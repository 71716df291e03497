// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <unordered_map>

namespace ibcoll {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;

std::mutex lock;
std::unordered_map<void*, size_t>& blocks() {
  static auto* const all = new std::unordered_map<void*, size_t>();  // outlives static destruction
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
  blocks()[memory] = size;
  return memory;
}

Status free_memory(void* memory) {
  if (!memory) return {};
  const std::lock_guard guard(lock);
  const auto found = blocks().find(memory);
  if (found == blocks().end())
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_mem_free: {} is not memory of ibcoll_mem_alloc, or freed already",
                 memory);
  ::munmap(memory, found->second);
  blocks().erase(found);
  return {};
}

}  // namespace ibcoll
