// SPDX-License-Identifier: BSD-3-Clause
// Memory for messages in transit: payloads that UCX has not sent yet, payloads that the caller has not seen yet, and
// the records of puts. Buffers are kept for reuse, so that traffic allocates nothing once it has warmed up; the credit
// windows bound their number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ibcoll {
class Registration;
}

namespace ibcoll::ucx {

struct Peer;

struct Buffer {
  enum class Use : uint8_t {
    kMessage,   // header and payload of an active message
    kControl,   // header of a control message
    kPut,       // header of a put whose payload is the caller's
    kFragment,  // header of one fragment of such a put
    kLargePut,  // a put in fragments (large_put.h)
    kLanding    // a rendezvous receive
  };
  Buffer* next = nullptr;  // in the pool's list, or in one of its holder's
  Peer* peer = nullptr;
  Buffer* whole = nullptr;         // of a fragment
  Registration* source = nullptr;  // of a put that UCX reads by RDMA: pinned
  uint64_t token = 0;              // of a put; the exposure's key of a landing
  uint32_t sequence = 0;           // of a landing
  Use use = Use::kMessage;
  uint8_t size_class = 0;
  bool with_ucx = false;  // which has not called back yet

  std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
};

class BufferPool {
 public:
  BufferPool() = default;
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool();

  // At least `bytes` at data(); nullptr: no memory, or more than the largest class.
  Buffer* take(size_t bytes);
  void give(Buffer* buffer);
  // Visits all buffers that the pool has given out, or holds.
  template <typename Visit>
  void for_each(Visit visit) {
    for (void* const memory : all_) visit(*static_cast<Buffer*>(memory));
  }
  size_t allocated_bytes() const { return allocated_bytes_; }

  static constexpr size_t kLargest = 64 * 1024 + 128;

 private:
  static constexpr std::array<size_t, 5> kClasses = {256, 640, 2048 + 128, 12 * 1024, kLargest};
  std::array<Buffer*, kClasses.size()> free_{};
  std::vector<void*> all_;  // free, or held by messages that were not handed out before the end
  size_t allocated_bytes_ = 0;
};

}  // namespace ibcoll::ucx
