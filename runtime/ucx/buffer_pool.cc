// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/ucx/buffer_pool.h"

#include <new>

namespace ibcoll::ucx {

BufferPool::~BufferPool() {
  for (void* memory : all_) ::operator delete(memory);
}

Buffer* BufferPool::take(size_t bytes) {
  for (size_t i = 0; i < kClasses.size(); ++i) {
    if (bytes > kClasses[i]) continue;
    if (Buffer* buffer = free_[i]; buffer != nullptr) {
      free_[i] = buffer->next;
      return buffer;
    }
    void* memory = nullptr;
    try {
      if (all_.size() == all_.capacity()) all_.reserve(2 * all_.size() + 8);
      memory = ::operator new(sizeof(Buffer) + kClasses[i]);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    all_.push_back(memory);
    allocated_bytes_ += sizeof(Buffer) + kClasses[i];
    Buffer* buffer = new (memory) Buffer;
    buffer->size_class = static_cast<uint8_t>(i);
    return buffer;
  }
  return nullptr;
}

void BufferPool::give(Buffer* buffer) {
  if (buffer == nullptr) return;
  buffer->next = free_[buffer->size_class];
  free_[buffer->size_class] = buffer;
}

}  // namespace ibcoll::ucx
