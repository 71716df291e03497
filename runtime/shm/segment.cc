// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ibcoll {
namespace {

constexpr int kCollapse = 25;  // MADV_COLLAPSE, Linux 6.1; the C library of then does not name it

constexpr uint64_t up_to(uint64_t unit, uint64_t bytes) { return (bytes + unit - 1) / unit * unit; }
constexpr uint64_t pages(uint64_t bytes) { return up_to(kSegmentPage, bytes); }

}  // namespace

Segment::Segment(int fd, int ranks, uint64_t ring_bytes) : fd_(fd), ranks_(ranks), ring_bytes_(ring_bytes) {
  const auto n = static_cast<uint64_t>(ranks);
  pair_bytes_ = pages(sizeof(PairBlock)) + pages(ring_bytes);
  pairs_start_ = pages(sizeof(Header)) + pages(n * sizeof(RankInfo) + 2 * n * n);
  heap_start_ = up_to(kChunk, pairs_start_ + n * n * pair_bytes_);
  bytes_ = heap_start_ + kHeapBytes;
}

Segment::~Segment() {
  if (reserved_) ::munmap(reserved_, bytes_ + kChunk);  // and what is mapped within
  if (fd_ >= 0) ::close(fd_);
  if (listener_ >= 0) ::close(listener_);
}

Result<std::unique_ptr<Segment>> Segment::create(int ranks, uint64_t ring_bytes) {
  const int fd = ::memfd_create("ibcoll", MFD_CLOEXEC);
  if (fd < 0) return error(IBCOLL_ERR_SYSTEM, "shm: memfd_create: {}", std::strerror(errno));
  std::unique_ptr<Segment> segment(new Segment(fd, ranks, ring_bytes));
  // A file beyond the limit is a signal that ends the process.
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < segment->bytes_)
    return error(
        IBCOLL_ERR_NO_MEMORY,
        "shm: the node's segment has {} bytes of address space, and files may have {}: ulimit -f unlimited, or "
        "a hard limit that permits it",
        segment->bytes_, limit.rlim_cur);
  if (::ftruncate(fd, static_cast<off_t>(segment->bytes_)) != 0)
    return error(IBCOLL_ERR_NO_MEMORY,
                 "shm: a shared segment of {} bytes was refused: {}; see the memory limit of the cgroup",
                 segment->bytes_, std::strerror(errno));
  if (Status status = segment->allocate_pages(0, segment->pairs_start_); !status.ok()) return status;
  if (Status status = segment->map(); !status.ok()) return status;
  segment->header().heap.prepare(kHeapBytes);
  return segment;
}

Status Segment::map() {
  // At a multiple of a huge page, as the heap lies at one in the file.
  void* memory = ::mmap(nullptr, bytes_ + kChunk, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory != MAP_FAILED) {
    reserved_ = static_cast<std::byte*>(memory);
    std::byte* const aligned = reserved_ + (kChunk - reinterpret_cast<uintptr_t>(reserved_) % kChunk);
    memory = ::mmap(aligned, bytes_, PROT_NONE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd_, 0);
  }
  // Where the program locks all its future memory (mlockall), the kernel would make every page of this now.
  if (memory != MAP_FAILED &&
      (::munlock(memory, bytes_) != 0 || ::mprotect(memory, bytes_, PROT_READ | PROT_WRITE) != 0))
    memory = MAP_FAILED;
  if (memory == MAP_FAILED)
    return error(
        IBCOLL_ERR_NO_MEMORY,
        "shm: mmap of the node's segment ({} bytes of address space): {}; see ulimit -v, and ulimit -l where the "
        "program calls mlockall",
        bytes_, std::strerror(errno));
  base_ = static_cast<std::byte*>(memory);
  ::madvise(base_, bytes_, MADV_DONTDUMP);
  infos_ = reinterpret_cast<RankInfo*>(base_ + pages(sizeof(Header)));
  may_copy_ = reinterpret_cast<std::atomic<uint8_t>*>(infos_ + ranks_);
  open_ = may_copy_ + ranks_ * ranks_;
  return {};
}

// Touching a page of a memfd that cannot be had is a SIGBUS; asking for it first is an error that can be reported.
Status Segment::allocate_pages(uint64_t offset, uint64_t bytes) noexcept {
  constexpr uint64_t kPiece = 64 * 1024;
  bool interrupted = false;
  for (uint64_t done = 0, piece = 0; done < bytes; done += piece) {
    // Before Linux 6.10 a signal undoes what a call has done so far: all of it might never fit between two of a profiler.
    piece = interrupted ? std::min(kPiece, bytes - done) : bytes;
    if (::fallocate(fd_, 0, static_cast<off_t>(offset + done), static_cast<off_t>(piece)) == 0) continue;
    if (errno == EINTR) {
      interrupted = true;
      piece = 0;
      continue;
    }
    return error(IBCOLL_ERR_NO_MEMORY,
                 "shm: {} bytes of shared memory were refused: {}; free memory, raise the cgroup's "
                 "limit, or lower IBCOLL_SHM_SLOT_BYTES and IBCOLL_SHM_RING_BYTES",
                 bytes, std::strerror(errno));
  }
  return {};
}

uint64_t Segment::pair_offset(int from, int to) const noexcept {
  return pairs_start_ +
         (static_cast<uint64_t>(from) * static_cast<uint64_t>(ranks_) + static_cast<uint64_t>(to)) * pair_bytes_;
}

Status Segment::ensure_pair(int from, int to) noexcept { return allocate_pages(pair_offset(from, to), pair_bytes_); }

PairBlock& Segment::pair(int from, int to) noexcept {
  return *reinterpret_cast<PairBlock*>(base_ + pair_offset(from, to));
}

std::byte* Segment::ring(int from, int to) noexcept { return base_ + pair_offset(from, to) + pages(sizeof(PairBlock)); }

// ---------------------------------------------------------------- heap

Result<uint64_t> Segment::allocate(uint64_t bytes) {
  const uint64_t size = pages(bytes);
  Result<uint64_t> offset = header().heap.take(size);
  if (!offset.ok()) return offset;
  for (uint64_t number = *offset / kChunk; number * kChunk < *offset + size; ++number) {
    if (Status status = allocate_chunk(number); !status.ok()) {
      header().heap.give_back(*offset, size);
      return status;
    }
  }
  return offset;
}

// Ranks that need one chunk at the same time both do all of it. One alone of them may be told that it is a huge page now.
Status Segment::allocate_chunk(uint64_t number) noexcept {
  std::atomic<Chunk>& chunk = header().chunks[number];
  if (chunk.load(std::memory_order_acquire) != Chunk::kNone) return {};
  const uint64_t offset = heap_start_ + number * kChunk;
  if (Status status = allocate_pages(offset, kChunk); !status.ok()) return status;
  const bool huge = ::madvise(base_ + offset, kChunk, kCollapse) == 0;
  // Mapped where and when it is used, and not counted as this rank's before others use it.
  ::madvise(base_ + offset, kChunk, MADV_DONTNEED);
  Chunk none = Chunk::kNone;
  if (huge)
    chunk.store(Chunk::kHugePage, std::memory_order_release);
  else
    chunk.compare_exchange_strong(none, Chunk::kPages, std::memory_order_release, std::memory_order_relaxed);
  return {};
}

uint64_t Segment::count_chunks(Chunk kind) noexcept {
  return kChunk * static_cast<uint64_t>(std::count(std::begin(header().chunks), std::end(header().chunks), kind));
}

// The pages stay: given back to the system they would be others next time, and devices that have them registered would go
// on with the old ones; nothing tells a registration cache of that.
void Segment::release(uint64_t offset, uint64_t bytes) noexcept { header().heap.give_back(offset, pages(bytes)); }

}  // namespace ibcoll
