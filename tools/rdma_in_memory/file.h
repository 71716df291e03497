// SPDX-License-Identifier: BSD-3-Clause
// The file that is the device, as this process sees it.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <mutex>

#include "tools/rdma_in_memory/layout.h"

namespace ibcoll::rdma_in_memory {

class File {
 public:
  // Opens the file that RDMA_IN_MEMORY names, once. False: there is none; why, where that is a mistake, is on standard
  // error.
  static bool open();
  static File& get() { return *only_; }

  Layout& layout() const { return *layout_; }
  uint32_t process() const { return process_; }
  int descriptor() const { return descriptor_; }
  bool is_this(ino_t number, dev_t device) const { return number == number_ && device == device_; }
  ino_t number() const { return number_; }

  // The memory at `offset`, up to the end of the chunk; null: no address space is left.
  static constexpr uint64_t kChunk = uint64_t{64} << 20;
  std::byte* at(uint64_t offset) {
    const uint64_t chunk = offset / kChunk;
    for (size_t i = chunk * kSpread >> 48;; ++i) {
      const Mapped& mapped = mapped_[i % kMapped];
      const uint64_t found = mapped.chunk.load(std::memory_order_acquire);
      if (found == chunk + 1) return mapped.memory + offset % kChunk;
      if (found == 0) return map(chunk) ? at(offset) : nullptr;
    }
  }
  // Zeroed memory for a ring of `bytes`, at most a chunk; 0: no memory. It lies in one chunk.
  uint64_t allocate(uint64_t bytes);
  void release(uint64_t offset, uint64_t bytes);

  // Whether a process has ended, as the kernel knows it: each holds a lock of a byte of the file.
  bool has_ended(uint32_t process);
  // Looks at one process, each time at another; the queue pairs of one that has ended exist no more.
  void look_for_ended();
  void forget_after_fork();

 private:
  static constexpr uint64_t kSpread = 0x9e3779b97f4a7c15;
  static constexpr size_t kMapped = 1 << 16;
  struct Mapped {
    std::atomic<uint64_t> chunk;  // + 1
    std::byte* memory;
  };

  bool open_at(const char* path);
  bool join();
  bool map(uint64_t chunk);

  static File* only_;
  int descriptor_ = -1;
  ino_t number_ = 0;
  dev_t device_ = 0;
  Layout* layout_ = nullptr;
  uint32_t process_ = 0;
  std::atomic<uint32_t> looked_at_{0};
  std::mutex mutex_;
  std::array<Mapped, kMapped> mapped_{};
  size_t used_ = 0;  // of mapped_
};

// mmap as the kernel has it: not what UCX and others put in its place to watch the program.
void* map_memory(void* address, size_t bytes, int flags, int descriptor, uint64_t offset);

}  // namespace ibcoll::rdma_in_memory
