// SPDX-License-Identifier: BSD-3-Clause
// All memory that UCX may hold: buffers of this transport, and pinned memory of the caller. If UCX cannot be ended in
// order, this memory is never freed.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <span>

#include "runtime/registration_cache/watched_cache.h"
#include "runtime/ucx/buffer_pool.h"
#include "runtime/ucx/exposures.h"

namespace ibcoll::ucx {

// Whole pages, for RDMA by UCX in both directions.
class Registrar final : public ibcoll::Registrar {
 public:
  explicit Registrar(ucp_context_h context) : context_(context) {}
  Result<void*> pin(std::span<std::byte> pages) override;
  void unpin(void* handle) override { ucp_mem_unmap(context_, static_cast<ucp_mem_h>(handle)); }

 private:
  ucp_context_h context_;
};

inline ucp_mem_h memory_of(const Registration& registration) { return static_cast<ucp_mem_h>(registration.handle()); }

struct Memory {
  Memory(ucp_context_h context, uint64_t seed) : registrar(context), exposures(seed) {}

  BufferPool pool;
  Registrar registrar;
  std::unique_ptr<WatchedCache> registrations;  // where large puts are by rendezvous
  Exposures exposures;
};

}  // namespace ibcoll::ucx
