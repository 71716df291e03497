// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ibcoll {
namespace {

constexpr uint64_t kHeapBytes = uint64_t{4} << 30;  // of address space; memory only as it is used

constexpr uint64_t pages(uint64_t bytes) { return (bytes + kSegmentPage - 1) / kSegmentPage * kSegmentPage; }

}  // namespace

Segment::Segment(int fd, int ranks, uint64_t ring_bytes) : fd_(fd), ranks_(ranks), ring_bytes_(ring_bytes) {
  const auto n = static_cast<uint64_t>(ranks);
  pair_bytes_ = pages(sizeof(PairBlock)) + pages(ring_bytes);
  pairs_start_ = pages(sizeof(Header)) + pages(n * sizeof(RankInfo) + 2 * n * n);
  heap_start_ = pairs_start_ + n * n * pair_bytes_;
  bytes_ = heap_start_ + kHeapBytes;
}

Segment::~Segment() {
  if (base_) ::munmap(base_, bytes_);
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
  void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd_, 0);
  if (memory == MAP_FAILED)
    return error(IBCOLL_ERR_NO_MEMORY, "shm: mmap of the node's segment ({} bytes of address space): {}; see ulimit -v",
                 bytes_, std::strerror(errno));
  base_ = static_cast<std::byte*>(memory);
  ::madvise(memory, bytes_, MADV_DONTDUMP);
  infos_ = reinterpret_cast<RankInfo*>(base_ + pages(sizeof(Header)));
  may_copy_ = reinterpret_cast<std::atomic<uint8_t>*>(infos_ + ranks_);
  open_ = may_copy_ + ranks_ * ranks_;
  return {};
}

// Touching a page of a memfd that cannot be had is a SIGBUS; asking for it first is an error that can be reported.
Status Segment::allocate_pages(uint64_t offset, uint64_t bytes) noexcept {
  while (::fallocate(fd_, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0) {
    if (errno == EINTR) continue;
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
  if (Status status = allocate_pages(heap_start_ + *offset, size); !status.ok()) {
    header().heap.give_back(*offset, size);
    return status;
  }
  return offset;
}

// The pages stay: given back to the system they would be others next time, and devices that have them registered would go
// on with the old ones; nothing tells a registration cache of that.
void Segment::release(uint64_t offset, uint64_t bytes) noexcept { header().heap.give_back(offset, pages(bytes)); }

}  // namespace ibcoll
