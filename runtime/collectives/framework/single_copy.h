// SPDX-License-Identifier: BSD-3-Clause
// For algorithms in which ranks of one node read from each other's private memory, with one copy: a rank publishes the
// address in its line of the node window. A reader has read all when it has published a later step.
#pragma once

#include <cstring>

#include "runtime/collectives/framework/algorithm.h"

namespace ibcoll {

constexpr uint64_t kAddressBytes = sizeof(uint64_t);

// In a step of at least kAddressBytes bytes, before publish().
inline void publish_address(Comm& c, ConstBytes memory) noexcept {
  const auto address = reinterpret_cast<uint64_t>(memory.data());
  c.lend(memory);
  std::memcpy(c.node().area(c.node().rank(), kAddressBytes), &address, sizeof address);
}

// The address that the local rank has published in the current step.
inline uint64_t published_address(NodeWindow& w, int local) noexcept {
  uint64_t address = 0;
  std::memcpy(&address, w.area(local, kAddressBytes), sizeof address);
  return address;
}

// Until no other rank uses the memory that was lent: all have published the step after they read, and the data that
// they could not read has been sent.
inline Task all_have_read(Comm& c) {
  co_await c.all_published();
  co_await c.flushed();
}

inline const char* applies_with_single_copy(const Shape& shape) {
  if (const char* const reason = applies_on_one_node(shape)) return reason;
  return shape.single_copy ? nullptr : "the kernel does not let the ranks read each other's memory";
}

}  // namespace ibcoll
