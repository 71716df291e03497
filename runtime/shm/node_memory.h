// SPDX-License-Identifier: BSD-3-Clause
// The node's heap, and single-copy reads between its ranks.
#pragma once

#include <vector>

#include "runtime/shm/node_ranks.h"

namespace ibcoll::shm {

class NodeMemory : public ibcoll::NodeMemory {
 public:
  explicit NodeMemory(NodeRanks& ranks) : ranks_(ranks) { read_.reserve(static_cast<size_t>(ranks.count())); }
  Result<uint64_t> allocate(uint64_t bytes) override;
  void release(uint64_t offset, uint64_t bytes) override { segment().release(offset, bytes); }
  uint64_t allocated_last(int peer) override;
  Result<std::byte*> at(uint64_t offset, uint64_t bytes) override { return segment().map_heap(offset, bytes); }
  Status back(uint64_t offset, uint64_t bytes) override { return segment().back(offset, bytes); }
  bool back_all(uint64_t offset, uint64_t bytes) override { return segment().back_all(offset, bytes); }
  bool alive(int peer) const override {
    const int local = ranks_.local(peer);
    return local == ranks_.self() || ranks_.alive(local);
  }
  bool can_read(int peer) const override { return ranks_.may_use(ranks_.local(peer)); }
  Status read(int peer, uint64_t address, std::span<std::byte> into) override;
  Status confirm() override;

 private:
  Segment& segment() noexcept { return ranks_.segment(); }
  Status gone(int local) const;

  NodeRanks& ranks_;
  std::vector<int> read_;  // local ranks, since the last confirm(), each once
};

}  // namespace ibcoll::shm
