// SPDX-License-Identifier: BSD-3-Clause
// A put that is sent in fragments: its state, in a buffer of the pool.
#pragma once

#include "runtime/ucx/buffer_pool.h"
#include "runtime/ucx/wire.h"

namespace ibcoll::ucx {

struct LargePut {
  PutHeader header;  // offset: of the next fragment
  const std::byte* source = nullptr;
  uint32_t fragments = 0;   // that UCX holds
  bool all_posted = false;  // or given up

  bool finished() const { return all_posted && fragments == 0; }
  static LargePut& in(Buffer* buffer) { return *reinterpret_cast<LargePut*>(buffer->data()); }
};

}  // namespace ibcoll::ucx
