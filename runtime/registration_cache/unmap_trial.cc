// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/registration_cache/unmap_trial.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace ibcoll {
namespace {

const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));

void* map(void* where, size_t bytes, int flags) {
  return ::mmap(where, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

// Was anything reported that has a byte of [address, address + bytes)? Takes all reports out.
bool reported(UnmapQueue& queue, const void* address, size_t bytes) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  const Interval range{begin, begin + bytes};
  bool found = false;
  while (queue.changed()) queue.drain([&](const Interval& lost) { found = found || lost.overlaps(range); });
  return found;
}

Status unseen(const char* what) {
  return error(IBCOLL_ERR_UNSUPPORTED, "a trial of {} was not reported by UCX's memory events", what);
}

// `area`: two pages, of which the first stays mapped.
Status try_calls(UnmapQueue& queue, std::byte* area) {
  ::munmap(area + page, page);
  if (!reported(queue, area + page, page)) return unseen("munmap()");
  if (map(area, page, MAP_FIXED) == MAP_FAILED || !reported(queue, area, page)) return unseen("mmap() over a mapping");
  ::madvise(area, page, MADV_DONTNEED);
  if (!reported(queue, area, page)) return unseen("madvise(MADV_DONTNEED)");
  return {};
}

// Larger than any block that malloc() takes from its heap (32 MB), and never touched: costs address space only.
Status try_free(UnmapQueue& queue) {
  constexpr size_t kLarge = size_t{64} << 20;
  void* const block = std::malloc(kLarge);
  if (block == nullptr) return {};  // then no such block is unmapped either
  // A page within the block: whether it is still mapped shows what free() did.
  const auto inside = (reinterpret_cast<uint64_t>(block) + kLarge / 2) / page * page;
  std::free(block);
  unsigned char resident = 0;
  const bool gone = ::mincore(reinterpret_cast<void*>(inside), page, &resident) != 0 && errno == ENOMEM;
  return gone && !reported(queue, reinterpret_cast<void*>(inside), page) ? unseen("free() of a large block") : Status();
}

}  // namespace

Status try_unmappings(UnmapQueue& queue) {
  void* const area = map(nullptr, 2 * page, 0);
  if (area == MAP_FAILED) return error(IBCOLL_ERR_NO_MEMORY, "mmap of {} bytes: {}", 2 * page, std::strerror(errno));
  Status status = try_calls(queue, static_cast<std::byte*>(area));
  ::munmap(area, page);  // not the second one: it may be another thread's by now
  return status.ok() ? try_free(queue) : status;
}

}  // namespace ibcoll
