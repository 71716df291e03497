// SPDX-License-Identifier: BSD-3-Clause
// The send and the receive buffer of a run: made once, for the largest size, and written before the first call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "ibcoll.h"

namespace ibcoll::perf {

inline constexpr size_t kGuardBytes = 64;  // verified on either side of what a collective may write

class Buffers {
 public:
  Buffers() = default;
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers();

  // From malloc where `context` is NULL, else from ibcoll_mem_alloc. Returns "" or why there is no memory.
  std::string allocate(ibcoll_context_t context, uint64_t send_bytes, uint64_t recv_bytes);

  std::byte* send() const { return send_; }  // page aligned
  std::byte* recv() const { return recv_ == nullptr ? nullptr : recv_ + kPage; }
  // What lies in front of the receive buffer and behind its first `extent` bytes.
  std::span<std::byte> guard_before() const { return {recv() - kGuardBytes, kGuardBytes}; }
  std::span<std::byte> guard_after(uint64_t extent) const { return {recv() + extent, kGuardBytes}; }
  uint64_t total_bytes() const { return total_; }

 private:
  static constexpr size_t kPage = 4096;
  std::byte* take(uint64_t bytes);
  void give_back(std::byte* memory);

  ibcoll_context_t context_ = nullptr;
  std::byte *send_ = nullptr, *recv_ = nullptr;
  uint64_t total_ = 0;
};

// Bytes of memory that this machine could still give away; a large number where it does not say.
uint64_t available_memory();
// What this process holds for itself alone (resident and not shared), in bytes; 0 where the kernel does not say.
uint64_t private_memory();

}  // namespace ibcoll::perf
