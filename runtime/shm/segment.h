// SPDX-License-Identifier: BSD-3-Clause
// The memory that the ranks of one node share: one memfd, so that nothing is left over however the ranks end. Its length is sealed: no process can cut it off under the others. Layout, in this
// order, each part page aligned:
//   Header, RankInfo[n], matrices n x n (which ranks may copy to and from each other, which rings are open),
//   pair blocks n x n (sender major), heap
// A pair block holds what one rank sends to one other: a ring and the exposures that guard puts.
//
// The file is large and has holes. A process maps a part when it first needs it. A part has memory once a process has
// asked for it, so running out of memory is an error of that call, not a SIGBUS later.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "runtime/machine/doorbell.h"
#include "runtime/shm/heap.h"

namespace ibcoll::shm {

constexpr uint64_t kSegmentPage = 4096;         // bytes; the unit in which the heap is allocated
constexpr uint64_t kChunk = uint64_t{2} << 20;  // bytes; the unit in which the heap gets memory
// Bytes of address space that a process takes for the heap at a time, where it has plenty. What lies in one such unit
// stays where it is mapped, and a window within one takes no further call to get addresses.
constexpr uint64_t kUnit = uint64_t{1} << 30;
constexpr uint64_t kHeapBytes = 64 * kUnit;  // at most; memory only as it is used

constexpr uint64_t round_up(uint64_t unit, uint64_t bytes) { return (bytes + unit - 1) / unit * unit; }
constexpr uint64_t whole_pages(uint64_t bytes) { return round_up(kSegmentPage, bytes); }

struct alignas(64) RankInfo {
  std::atomic<int32_t> pid;
  std::atomic<int32_t> open_count;  // changes when a sender has opened a ring to this rank
  std::atomic<uint64_t> probe;      // address of a word in the rank's private memory: probe_word()
  std::atomic<uint64_t> start;      // of the process, so that a reused pid is not taken for it
  Bell bell;
  std::atomic<uint64_t> trial_step;    // memory_trial.h
  std::atomic<uint64_t> trial_memory;  // address in the rank's private memory
  std::atomic<int32_t> trial_cpu;
  std::atomic<uint32_t> trial_page;  // of the heap; where the rank's stream is
  std::atomic<uint64_t> window;      // pages before the last window that the rank has reserved, and 1; 0: none
};
static_assert(sizeof(RankInfo) == 64);

// Guards one region that the receiver of a pair lets the sender write.
struct Exposure {
  enum State : uint64_t { kFree = 0, kExposed = 1, kWriting = 2 };
  std::atomic<uint64_t> word;  // generation << 2 | state
  std::atomic<uint64_t> address;
  std::atomic<uint64_t> bytes;
};

struct PairBlock {
  static constexpr int kExposures = 64;
  alignas(64) std::atomic<uint64_t> tail;  // written by the sender: bytes ever put into the ring
  alignas(64) std::atomic<uint64_t> head;  // written by the receiver: bytes ever taken out
  alignas(64) Exposure exposures[kExposures];
};

class Segment {
 public:
  // Creates the segment of a node with `ranks` ranks. ring_bytes: a power of two.
  static Result<std::unique_ptr<Segment>> create(int ranks, uint64_t ring_bytes);
  // Maps the segment that another rank of the node has created: see handover.h.
  static Result<std::unique_ptr<Segment>> adopt(UniqueFd segment, int ranks, uint64_t ring_bytes);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  int descriptor() const noexcept { return fd_.get(); }
  int ranks() const noexcept { return ranks_; }
  uint64_t ring_bytes() const noexcept { return ring_bytes_; }
  uint64_t slot_bytes() const noexcept { return ring_bytes_ / 4; }  // of the longest payload
  RankInfo& info(int rank) noexcept { return infos_[rank]; }
  // Whether `rank` may read and write the memory of `owner`: as found at the start, which does not change for ranks
  // that choose by it; kRefused: but not any more.
  enum MayCopy : uint8_t { kNever = 0, kMayCopy = 1, kRefused = 2 };
  std::atomic<uint8_t>& may_copy(int rank, int owner) noexcept { return may_copy_[rank * ranks_ + owner]; }

  // 1: `from` uses the ring to `to`. In memory that exists from the start, unlike the rings.
  std::atomic<uint8_t>& open(int from, int to) noexcept { return open_[to * ranks_ + from]; }

  // Gives the pair block memory, and maps it in this process.
  Status ensure_pair(int from, int to) noexcept;
  // The same of a pair block that has memory.
  Status map_pair(int from, int to) noexcept;
  PairBlock& pair(int from, int to) noexcept;
  std::byte* ring(int from, int to) noexcept;

  // Heap of the segment, for node windows. Offsets count from the start of the heap. A part of it that is reserved has
  // no memory before a process asks for some, and each process maps it for itself.
  Result<uint64_t> reserve(uint64_t bytes);
  Status back(uint64_t offset, uint64_t bytes) noexcept;
  // All of it. False: it is too much for what windows may have before they are used.
  bool back_all(uint64_t offset, uint64_t bytes) noexcept;
  Result<std::byte*> map_heap(uint64_t offset, uint64_t bytes) noexcept;
  // All three.
  Result<uint64_t> allocate(uint64_t bytes);
  void release(uint64_t offset, uint64_t bytes) noexcept;
  uint64_t reserved() noexcept { return header().heap.used(); }
  // Memory that this process has mapped.
  std::byte* heap(uint64_t offset) noexcept { return units_[offset >> unit_shift_] + (offset & (unit() - 1)); }
  uint64_t unit() const noexcept { return uint64_t{1} << unit_shift_; }
  uint64_t heap_size() const noexcept { return heap_size_; }
  // Bytes of memory that the heap has in whole chunks.
  uint64_t heap_bytes() noexcept;

 private:
  struct Header {
    Heap heap;
    std::atomic<bool> backed[kHeapBytes / kChunk];  // the chunk has memory
  };

  Segment(UniqueFd fd, int ranks, uint64_t ring_bytes);
  Status map();
  Status find_unit();
  Result<std::byte*> take_addresses(uint64_t bytes) noexcept;
  Status map_at(std::byte* address, uint64_t offset, uint64_t bytes) noexcept;
  Status map_chunks(uint64_t first, uint64_t last) noexcept;
  uint64_t pair_offset(int from, int to) const noexcept;
  Header& header() noexcept { return *reinterpret_cast<Header*>(base_); }
  Status check_limit(uint64_t bytes) noexcept;
  bool known_to_be_backed(uint64_t begin, uint64_t end) const noexcept;
  void remember_backed(uint64_t begin, uint64_t end) noexcept;
  Status allocate_pages(uint64_t offset, uint64_t bytes) noexcept;
  Status allocate_chunk(uint64_t number) noexcept;

  UniqueFd fd_;
  int ranks_;
  uint64_t ring_bytes_;
  uint64_t pair_bytes_;
  uint64_t pairs_start_;
  uint64_t heap_start_;
  uint64_t heap_size_ = 0;
  int unit_shift_ = 0;  // log2 of the bytes of a unit, which is the same for all ranks of the node
  struct Taken {        // address space
    std::byte* start;
    uint64_t bytes;
  };
  std::vector<Taken> taken_;
  std::byte* base_ = nullptr;      // of all before the heap
  std::vector<std::byte*> units_;  // of the heap; nullptr: not mapped in any part
  std::vector<bool> pairs_mapped_;
  std::vector<bool> chunks_mapped_;
  std::vector<bool> pages_backed_;  // of the heap, by this process
  // The limit that check_limit() read last, when it did, and how much was asked for since.
  uint64_t limit_left_ = 0;
  std::chrono::steady_clock::time_point limit_read_at_;
  uint64_t asked_since_ = 0;
  RankInfo* infos_ = nullptr;
  std::atomic<uint8_t>* may_copy_ = nullptr;
  std::atomic<uint8_t>* open_ = nullptr;
};

}  // namespace ibcoll::shm
