// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/machine/memory_limit.h"

namespace ibcoll::shm {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
// The least that a node needs; the file is larger where files may be.
constexpr uint64_t kLeastHeap = uint64_t{64} << 20;
constexpr uint64_t kLeastUnit = uint64_t{8} << 20;

// If address space is scarce (ulimit -v), takes a small part of what is left: the program and UCX need some, too.
uint64_t unit_for_this_process() {
  constexpr uint64_t kPart = 8;
  return std::clamp(std::bit_floor(address_space_left() / kPart), kLeastUnit, kUnit);
}

}  // namespace

Segment::Segment(UniqueFd fd, int ranks, uint64_t ring_bytes)
    : fd_(std::move(fd)), ranks_(ranks), ring_bytes_(ring_bytes) {
  const auto n = static_cast<uint64_t>(ranks);
  pair_bytes_ = whole_pages(sizeof(PairBlock)) + whole_pages(ring_bytes);
  pairs_start_ = whole_pages(sizeof(Header)) + whole_pages(n * sizeof(RankInfo) + 2 * n * n);
  heap_start_ = round_up(kChunk, pairs_start_ + n * n * pair_bytes_);
  pairs_mapped_.resize(n * n);
}

Segment::~Segment() {
  for (const Taken& taken : taken_) ::munmap(taken.start, taken.bytes);  // and what is mapped within
}

Result<std::unique_ptr<Segment>> Segment::create(int ranks, uint64_t ring_bytes) {
  UniqueFd made(::memfd_create("ibcoll", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made) return error(IBCOLL_ERR_SYSTEM, "shm: memfd_create: {}", std::strerror(errno));
  std::unique_ptr<Segment> segment(new Segment(std::move(made), ranks, ring_bytes));
  const int fd = segment->descriptor();
  // A file beyond the limit is a signal that ends the process.
  rlimit limit{};
  const bool limited = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < segment->heap_start_ + kHeapBytes;
  if (limited && limit.rlim_cur < segment->heap_start_ + kLeastHeap)
    return error(
        IBCOLL_ERR_NO_MEMORY,
        "shm: the node's segment needs {} bytes of address space, and files may have {}: ulimit -f unlimited, or "
        "a hard limit that permits it",
        segment->heap_start_ + kLeastHeap, limit.rlim_cur);
  const uint64_t heap = limited ? (limit.rlim_cur - segment->heap_start_) / kChunk * kChunk : kHeapBytes;
  if (::ftruncate(fd, static_cast<off_t>(segment->heap_start_ + heap)) != 0)
    return error(IBCOLL_ERR_NO_MEMORY, "shm: a shared segment of {} bytes was refused: {}", segment->heap_start_ + heap,
                 std::strerror(errno));
  if (::fcntl(fd, F_ADD_SEALS, kSeals) != 0)
    return error(IBCOLL_ERR_SYSTEM, "shm: the shared segment cannot be sealed: {}", std::strerror(errno));
  if (Status status = segment->check_limit(segment->pairs_start_); !status.ok()) return status;
  if (Status status = segment->allocate_pages(0, segment->pairs_start_); !status.ok()) return status;
  if (Status status = segment->map(); !status.ok()) return status;
  segment->header().heap.prepare(segment->heap_size_, unit_for_this_process());
  if (Status status = segment->find_unit(); !status.ok()) return status;
  return segment;
}

Result<std::unique_ptr<Segment>> Segment::adopt(UniqueFd fd, int ranks, uint64_t ring_bytes) {
  std::unique_ptr<Segment> segment(new Segment(std::move(fd), ranks, ring_bytes));
  if (Status status = segment->map(); !status.ok()) return status;
  if (Status status = segment->find_unit(); !status.ok()) return status;
  return segment;
}

// Maps what all processes need, and reserves addresses for what is mapped on demand.
Status Segment::map() {
  struct stat file {};
  const int seals = ::fcntl(fd_.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || ::fstat(fd_.get(), &file) != 0 ||
      static_cast<uint64_t>(file.st_size) < heap_start_ + kLeastHeap)
    return error(IBCOLL_ERR_SYSTEM, "shm: what was handed over as this node's segment is not one of this job");
  heap_size_ = std::min(static_cast<uint64_t>(file.st_size) - heap_start_, kHeapBytes);
  chunks_mapped_.resize(heap_size_ / kChunk);
  taken_.reserve(1);
  Result<std::byte*> base = take_addresses(heap_start_);
  if (!base.ok()) return base.status();
  base_ = *base;
  if (Status status = map_at(base_, 0, pairs_start_); !status.ok()) return status;
  infos_ = reinterpret_cast<RankInfo*>(base_ + whole_pages(sizeof(Header)));
  may_copy_ = reinterpret_cast<std::atomic<uint8_t>*>(infos_ + ranks_);
  open_ = may_copy_ + ranks_ * ranks_;
  return {};
}

// Reads the unit that the rank that made the segment has chosen.
Status Segment::find_unit() {
  const uint64_t unit = header().heap.unit();
  if (!std::has_single_bit(unit) || unit < kLeastUnit || unit > kUnit)
    return error(IBCOLL_ERR_SYSTEM,
                 "shm: what was handed over as this node's segment is spoiled: its heap has units of "
                 "{} bytes",
                 unit);
  unit_shift_ = std::countr_zero(unit);
  units_.resize((heap_size_ + unit - 1) / unit);
  taken_.reserve(units_.size() + 1);
  return {};
}

// At a multiple of a chunk, as the heap lies at one in the file.
Result<std::byte*> Segment::take_addresses(uint64_t bytes) noexcept {
  void* const memory = ::mmap(nullptr, bytes + kChunk, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return error(IBCOLL_ERR_NO_MEMORY, "shm: {} bytes of address space for the node's segment: {}; see ulimit -v",
                 bytes, std::strerror(errno));
  auto* const start = static_cast<std::byte*>(memory);
  taken_.push_back({start, bytes + kChunk});
  ::munlock(start, bytes + kChunk);
  ::madvise(start, bytes + kChunk, MADV_DONTDUMP);
  return start + (kChunk - reinterpret_cast<uintptr_t>(start) % kChunk);
}

Status Segment::map_at(std::byte* address, uint64_t offset, uint64_t bytes) noexcept {
  void* const memory =
      ::mmap(address, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd_.get(), static_cast<off_t>(offset));
  // Where the program locks all its future memory (mlockall), the kernel would make every page of this now.
  if (memory == MAP_FAILED || ::munlock(memory, bytes) != 0 || ::mprotect(memory, bytes, PROT_READ | PROT_WRITE) != 0)
    return error(IBCOLL_ERR_NO_MEMORY,
                 "shm: {} bytes of the node's segment cannot be mapped: {}; see ulimit -v, /proc/sys/vm/max_map_count, "
                 "and ulimit "
                 "-l where the program calls mlockall",
                 bytes, std::strerror(errno));
  ::madvise(memory, bytes, MADV_DONTDUMP);
  return {};
}

// Memory beyond the limit of a control group is not refused: the kernel ends a process of the group. So some is left
// for memory that is not asked for here.
// To read the limit takes some 50 us, as long as everything else in the creation of a team. So the value is used until
// this process has asked for so much that the ranks of a node together may have taken a large part of what was left.
Status Segment::check_limit(uint64_t bytes) noexcept {
  constexpr uint64_t kReserve = 4 << 20;
  constexpr std::chrono::milliseconds kBelieved{20};
  constexpr uint64_t kBelievedPart = 64;
  const auto now = std::chrono::steady_clock::now();
  if (asked_since_ + bytes > limit_left_ / kBelievedPart || now - limit_read_at_ > kBelieved) {
    limit_left_ = memory_left();
    limit_read_at_ = now;
    asked_since_ = 0;
  }
  asked_since_ += bytes;
  const uint64_t left = limit_left_;
  if (left == UINT64_MAX || bytes + kReserve <= left) return {};
  return error(
      IBCOLL_ERR_NO_MEMORY,
      "shm: {} bytes of shared memory are more than the memory limit of this process's control group allows: {} are "
      "left; raise the limit, or lower IBCOLL_SHM_SLOT_BYTES and IBCOLL_SHM_RING_BYTES",
      bytes, left);
}

// Touching a page of a memfd that cannot be had is a SIGBUS; asking for it first is an error that can be reported.
Status Segment::allocate_pages(uint64_t offset, uint64_t bytes) noexcept {
  constexpr uint64_t kPart = 64 * 1024;
  bool interrupted = false;
  for (uint64_t done = 0, part = 0; done < bytes; done += part) {
    // Before Linux 6.10 a signal undoes what a call has done so far: under a profiler the whole might never complete.
    part = interrupted ? std::min(kPart, bytes - done) : bytes;
    if (::fallocate(fd_.get(), 0, static_cast<off_t>(offset + done), static_cast<off_t>(part)) == 0) continue;
    if (errno == EINTR) {
      interrupted = true;
      part = 0;
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

// Called for each region that is exposed: no system call but the first time.
Status Segment::ensure_pair(int from, int to) noexcept {
  if (pairs_mapped_[static_cast<size_t>(from * ranks_ + to)]) return {};
  if (Status status = check_limit(pair_bytes_); !status.ok()) return status;
  if (Status status = allocate_pages(pair_offset(from, to), pair_bytes_); !status.ok()) return status;
  return map_pair(from, to);
}

Status Segment::map_pair(int from, int to) noexcept {
  const auto number = static_cast<size_t>(from * ranks_ + to);
  if (pairs_mapped_[number]) return {};
  const uint64_t offset = pair_offset(from, to);
  if (Status status = map_at(base_ + offset, offset, pair_bytes_); !status.ok()) return status;
  pairs_mapped_[number] = true;
  return {};
}

PairBlock& Segment::pair(int from, int to) noexcept {
  return *reinterpret_cast<PairBlock*>(base_ + pair_offset(from, to));
}

std::byte* Segment::ring(int from, int to) noexcept {
  return base_ + pair_offset(from, to) + whole_pages(sizeof(PairBlock));
}

}  // namespace ibcoll::shm
