// SPDX-License-Identifier: BSD-3-Clause
// A put that goes out in pieces: what is kept of it, in a buffer of the pool.
#pragma once

#include "runtime/ucx/buffer_pool.h"
#include "runtime/ucx/wire.h"

namespace ibcoll::ucx {

struct LargePut {
  PutHeader header;  // offset: where the next piece begins
  const std::byte* source = nullptr;
  uint32_t pieces = 0;      // UCX holds
  bool all_posted = false;  // or given up

  bool finished() const { return all_posted && pieces == 0; }
  static LargePut& in(Buffer* buffer) { return *reinterpret_cast<LargePut*>(buffer->data()); }
};

}  // namespace ibcoll::ucx
