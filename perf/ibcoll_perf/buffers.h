// SPDX-License-Identifier: BSD-3-Clause
// The send and the receive buffer of a run: made once, for the largest size, and written before the first call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "ibcoll.h"

namespace ibcoll::perf {

class Buffers {
 public:
  Buffers() = default;
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers();

  // From malloc where `context` is NULL, else from ibcoll_mem_alloc. Returns "" or why there is no memory.
  std::string allocate(ibcoll_context_t context, uint64_t send_bytes, uint64_t recv_bytes);

  std::span<std::byte> send() const { return send_; }  // page aligned
  std::span<std::byte> recv() const { return recv_; }
  uint64_t total_bytes() const { return send_.size() + recv_.size(); }

 private:
  std::span<std::byte> take(uint64_t bytes);
  void give_back(std::span<std::byte> memory);

  ibcoll_context_t context_ = nullptr;
  std::span<std::byte> send_, recv_;
};

// Bytes of memory that this machine could still give away; a large number where it does not say.
uint64_t available_memory();
// The memory of this process alone (resident and not shared), in bytes; 0 where the kernel does not say.
uint64_t private_memory();

}  // namespace ibcoll::perf
