// SPDX-License-Identifier: BSD-3-Clause
// The regions that this rank has exposed, and to which peers. A put names a key; only the rank that was given the key
// may use it, and only within the region: everything that comes over the network is checked against this table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/transport/transport.h"

namespace ibcoll {
class Registration;
}

namespace ibcoll::ucx {

class Exposures {
 public:
  struct Exposure {
    uint64_t key = 0;  // 0: this entry is free
    int peer = -1;
    std::span<std::byte> memory;
    Registration* pinned = nullptr;  // where UCX writes by RDMA
    uint32_t landing = 0;            // receives by UCX into the region under way
    bool concealing = false;         // waits for these to end; no new ones
    bool held = false;               // by UCX although the endpoint is closed
    Time deadline = 0;               // with concealing
  };

  // `seed` makes keys differ between ranks and runs, so that a stale or invented one is very unlikely to fit.
  explicit Exposures(uint64_t seed) : state_(seed) {}

  RemoteRegion add(int peer, std::span<std::byte> memory, Registration* pinned = nullptr);
  // nullptr: no such exposure to this peer, or [address, address + bytes) is not within it.
  Exposure* find(uint64_t key, int peer, uint64_t address, size_t bytes);
  Exposure* find(uint64_t key);
  void remove(uint64_t key);
  size_t count() const { return count_; }
  template <typename Function>
  void for_each(Function function) {
    for (Exposure& exposure : table_)
      if (exposure.key != 0) function(exposure);
  }

 private:
  static constexpr unsigned kIndexBits = 24;
  std::vector<Exposure> table_;
  std::vector<uint32_t> free_;
  uint64_t state_;
  size_t count_ = 0;
};

}  // namespace ibcoll::ucx
