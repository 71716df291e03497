// SPDX-License-Identifier: BSD-3-Clause
// The heap of the segment: which parts are in use, which have memory, and which this process has mapped.
#include <algorithm>
#include <cerrno>
#include <new>

#include "runtime/machine/memory_limit.h"
#include "runtime/shm/segment.h"

namespace ibcoll::shm {
namespace {

// The most memory that windows have before all of it is used. A node's first windows are used most.
constexpr uint64_t kMostAtOnce = uint64_t{1} << 30;

}  // namespace

Result<uint64_t> Segment::allocate(uint64_t bytes) {
  Result<uint64_t> offset = reserve(bytes);
  if (!offset.ok()) return offset;
  Status status = check_limit(bytes);
  if (status.ok()) status = map_heap(*offset, bytes).status();
  for (uint64_t number = *offset / kChunk; status.ok() && number * kChunk < *offset + bytes; ++number)
    status = allocate_chunk(number);
  if (status.ok()) return offset;
  release(*offset, bytes);
  return status;
}

Result<uint64_t> Segment::reserve(uint64_t bytes) { return header().heap.take(whole_pages(bytes)); }

Status Segment::back(uint64_t offset, uint64_t bytes) noexcept {
  const uint64_t begin = offset / kSegmentPage * kSegmentPage, end = whole_pages(offset + bytes);
  bool whole = true;
  for (uint64_t number = begin / kChunk; whole && number * kChunk < end; ++number)
    whole = header().backed[number].load(std::memory_order_acquire);
  if (whole || known_to_be_backed(begin, end)) return {};
  Status status = check_limit(end - begin);
  if (status.ok()) status = allocate_pages(heap_start_ + begin, end - begin);
  if (status.ok()) remember_backed(begin, end);
  return status;
}

// Pages stay, so this process need not ask for them again.
bool Segment::known_to_be_backed(uint64_t begin, uint64_t end) const noexcept {
  const uint64_t last = end / kSegmentPage;
  if (last > pages_backed_.size()) return false;
  uint64_t page = begin / kSegmentPage;
  while (page < last && pages_backed_[page]) ++page;
  return page == last;
}

void Segment::remember_backed(uint64_t begin, uint64_t end) noexcept {
  try {
    if (end / kSegmentPage > pages_backed_.size()) pages_backed_.resize(end / kSegmentPage);
  } catch (const std::bad_alloc&) {
    return;  // it asks again
  }
  for (uint64_t page = begin / kSegmentPage; page < end / kSegmentPage; ++page) pages_backed_[page] = true;
}

bool Segment::back_all(uint64_t offset, uint64_t bytes) noexcept {
  const uint64_t there = heap_bytes();
  if (bytes > memory_left() / 2 || (there > 0 && there + bytes > kMostAtOnce)) return false;
  for (uint64_t number = offset / kChunk; number * kChunk < offset + bytes; ++number)
    if (!allocate_chunk(number).ok()) return false;
  return true;
}

// Parts of a unit stay where they are mapped, so that devices may keep them registered.
Result<std::byte*> Segment::map_heap(uint64_t offset, uint64_t bytes) noexcept {
  if (bytes == 0 || offset >= heap_size_ || bytes > heap_size_ - offset)
    return error(IBCOLL_ERR_INTERNAL, "shm: {} bytes at {} are not in the node's heap of {} bytes", bytes, offset,
                 heap_size_);
  const uint64_t unit_bytes = unit();
  const uint64_t first = offset / unit_bytes, last = (offset + bytes - 1) / unit_bytes;
  bool contiguous = units_[first] != nullptr;
  for (uint64_t unit = first; unit < last; ++unit)
    contiguous = contiguous && units_[unit + 1] == units_[unit] + unit_bytes;
  if (!contiguous) {
    Result<std::byte*> start =
        take_addresses(std::min((last + 1 - first) * unit_bytes, heap_size_ - first * unit_bytes));
    if (!start.ok()) return start;
    for (uint64_t unit = first; unit <= last; ++unit) units_[unit] = *start + (unit - first) * unit_bytes;
    const auto chunk = chunks_mapped_.begin();
    std::fill(chunk + static_cast<std::ptrdiff_t>(first * (unit_bytes / kChunk)),
              chunk + static_cast<std::ptrdiff_t>(std::min((last + 1) * (unit_bytes / kChunk), chunks_mapped_.size())),
              false);
  }
  if (Status status = map_chunks(offset / kChunk, (offset + bytes - 1) / kChunk); !status.ok()) return status;
  return heap(offset);
}

Status Segment::map_chunks(uint64_t first, uint64_t last) noexcept {
  for (uint64_t at = first; at <= last;) {
    uint64_t end = at;
    while (end <= last && !chunks_mapped_[end] && (end == at || end % (unit() / kChunk) != 0)) ++end;
    if (end > at) {
      if (Status status = map_at(heap(at * kChunk), heap_start_ + at * kChunk, (end - at) * kChunk); !status.ok())
        return status;
      for (uint64_t chunk = at; chunk < end; ++chunk) chunks_mapped_[chunk] = true;
    }
    at = std::max(end, at + 1);
  }
  return {};
}

// Ranks that need one chunk at the same time both do all of it.
Status Segment::allocate_chunk(uint64_t number) noexcept {
  std::atomic<bool>& backed = header().backed[number];
  if (backed.load(std::memory_order_acquire)) return {};
  if (Status status = allocate_pages(heap_start_ + number * kChunk, kChunk); !status.ok()) return status;
  backed.store(true, std::memory_order_release);
  return {};
}

uint64_t Segment::heap_bytes() noexcept {
  const std::atomic<bool>* const backed = header().backed;
  return kChunk * static_cast<uint64_t>(std::count_if(backed, backed + chunks_mapped_.size(), [](const auto& chunk) {
           return chunk.load(std::memory_order_acquire);
         }));
}

// The pages stay. If they were returned to the system, the next user would get others, and devices that have the old
// ones registered would continue with these, because no event reaches a registration cache.
void Segment::release(uint64_t offset, uint64_t bytes) noexcept { header().heap.give_back(offset, whole_pages(bytes)); }

}  // namespace ibcoll::shm
