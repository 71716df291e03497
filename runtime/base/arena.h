// SPDX-License-Identifier: BSD-3-Clause
// Memory of one collective: its coroutine frame, its bookkeeping, its scratch buffers. Bump allocation; everything ends
// at once with reset(), which keeps the memory, so that a persistent request allocates in its first run only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace ibcoll {

class Arena {
 public:
  // `first_chunk`: bytes that it takes at first, at least.
  explicit Arena(size_t first_chunk = kUsualChunk) noexcept : spare_(first_chunk / 2) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() { release(first_); }

  static constexpr size_t kUsualChunk = 4096;

  // 64-byte aligned, uninitialised; nullptr when memory is short.
  void* allocate(size_t bytes) noexcept {
    const size_t size = bytes ? (bytes + kAlignment - 1) & ~(kAlignment - 1) : kAlignment;
    if (bytes > kMost) return nullptr;
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
    return sum;
  }

  // Frees all allocations. Next time as much will fit into one chunk, and more: how much is alive at once depends on
  // which rank comes first.
  void reset() noexcept {
    if (first_ && (first_->next || first_->bytes < used_ + spare_)) {
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

  struct alignas(kAlignment) Chunk {
    Chunk* next;
    size_t bytes;
    std::byte* begin() { return reinterpret_cast<std::byte*>(this + 1); }
  };

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
  const size_t spare_;  // that a chunk must have beyond what was used; half of a first chunk
};

}  // namespace ibcoll
