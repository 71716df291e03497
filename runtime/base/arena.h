// SPDX-License-Identifier: BSD-3-Clause
// Memory of one collective: its coroutine frame, its bookkeeping, its scratch buffers. Bump allocation; everything ends
// at once with reset(), which keeps the memory, so that a persistent request allocates in its first run only. Long
// blocks come from where all collectives of a context share them, and are given back by reset().
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace ibcoll {

// Where arenas take long blocks from.
class LongBlocks {
 public:
  // At least `bytes`, which becomes what the block has; 64-byte aligned, uninitialised. nullptr: memory is short.
  virtual void* take(size_t& bytes) noexcept = 0;
  virtual void give_back(void* block, size_t bytes) noexcept = 0;

 protected:
  ~LongBlocks() = default;
};

class Arena {
 public:
  // `first_chunk`: bytes that it takes at first, at least. `long_blocks`: nullptr, or outlives it.
  explicit Arena(size_t first_chunk = kUsualChunk, LongBlocks* long_blocks = nullptr) noexcept
      : spare_(first_chunk / 2), long_blocks_(long_blocks) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() {
    give_back_long();
    release(first_);
  }

  static constexpr size_t kUsualChunk = 4096;
  static constexpr size_t kLong = 64 << 10;  // of a block that comes from long_blocks

  // 64-byte aligned, uninitialised; nullptr when memory is short.
  void* allocate(size_t bytes) noexcept {
    const size_t size = bytes ? (bytes + kAlignment - 1) & ~(kAlignment - 1) : kAlignment;
    if (bytes > kMost) return nullptr;
    if (bytes >= kLong && long_blocks_) return allocate_long(bytes);
    used_ += size;
    if (size > static_cast<size_t>(end_ - at_) && !grow(size)) return nullptr;
    std::byte* const memory = at_;
    at_ += size;
    return memory;
  }

  template <typename T>
  T* create() noexcept {
    void* const memory = allocate(sizeof(T));
    return memory ? new (memory) T() : nullptr;
  }

  // Memory that it holds, in use or not.
  size_t bytes() const noexcept {
    size_t sum = 0;
    for (const Chunk* chunk = first_; chunk; chunk = chunk->next) sum += chunk->bytes;
    for (const Long* block = long_; block; block = block->next) sum += block->bytes;
    return sum;
  }

  // This is in memory that it holds, or in a long block of it.
  bool has(const void* memory) const noexcept {
    for (const Chunk* chunk = first_; chunk; chunk = chunk->next)
      if (is_within(memory, chunk->begin(), chunk->bytes)) return true;
    return has_long(memory);
  }
  bool has_long(const void* memory) const noexcept {
    for (const Long* block = long_; block; block = block->next)
      if (is_within(memory, block->memory, block->bytes)) return true;
    return false;
  }

  // Frees all allocations. Next time as much will fit into one chunk, and more: how much is alive at once depends on
  // which rank comes first. With a second chunk the last one is never that large.
  void reset() noexcept {
    give_back_long();
    if (first_ && first_->bytes < used_ + spare_) {
      const size_t wanted = used_;
      release(first_);
      first_ = nullptr;
      at_ = end_ = nullptr;
      grow(wanted + 2 * spare_);
    }
    used_ = 0;
    if (first_) at_ = first_->begin();
  }

 private:
  static constexpr size_t kAlignment = 64;
  static constexpr size_t kMost = PTRDIFF_MAX / 2;  // no object is larger

  static bool is_within(const void* memory, const void* begin, size_t bytes) noexcept {
    return reinterpret_cast<uintptr_t>(memory) - reinterpret_cast<uintptr_t>(begin) < bytes;
  }

  struct alignas(kAlignment) Chunk {
    Chunk* next;
    size_t bytes;
    std::byte* begin() { return reinterpret_cast<std::byte*>(this + 1); }
    const std::byte* begin() const { return reinterpret_cast<const std::byte*>(this + 1); }
  };

  // A block of long_blocks_.
  struct Long {
    Long* next;
    void* memory;
    size_t bytes;
  };

  void* allocate_long(size_t bytes) noexcept {
    void* const place = allocate(sizeof(Long));
    void* const memory = place ? long_blocks_->take(bytes) : nullptr;
    if (memory) long_ = new (place) Long{long_, memory, bytes};
    return memory;
  }
  // The last one first: the next run, which takes them in the same order, then gets the same ones.
  void give_back_long() noexcept {
    for (; long_; long_ = long_->next) long_blocks_->give_back(long_->memory, long_->bytes);
  }

  bool grow(size_t least) noexcept {
    const size_t bytes = least > 2 * spare_ ? least : 2 * spare_;
    void* const memory = ::operator new(sizeof(Chunk) + bytes, std::align_val_t(kAlignment), std::nothrow);
    if (!memory) return false;
    first_ = new (memory) Chunk{first_, bytes};
    at_ = first_->begin();
    end_ = at_ + bytes;
    return true;
  }

  static void release(Chunk* chunk) noexcept {
    while (chunk) {
      Chunk* const next = chunk->next;
      ::operator delete(chunk, std::align_val_t(kAlignment));
      chunk = next;
    }
  }

  Chunk* first_ = nullptr;
  std::byte* at_ = nullptr;
  std::byte* end_ = nullptr;
  size_t used_ = 0;
  Long* long_ = nullptr;
  const size_t spare_;  // that a chunk must have beyond what was used; half of a first chunk
  LongBlocks* const long_blocks_;
};

}  // namespace ibcoll
