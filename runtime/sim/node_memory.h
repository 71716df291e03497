// SPDX-License-Identifier: BSD-3-Clause
// Shared memory of simulated nodes: memory of the one process that all simulated ranks live in.
#pragma once

#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

#include "runtime/sim/random.h"
#include "runtime/transport/transport.h"

namespace ibcoll::sim {

class Network;

// Which ranks of a node may read each other's private memory.
// kSomeFail: all may, and for some pairs it does not work.
enum class Reads { kAll, kNone, kSomePairs, kSomeFail };

// The segment of one node.
class Node {
 public:
  explicit Node(uint64_t capacity) : capacity_(capacity) {}
  Result<uint64_t> allocate(uint64_t bytes);
  void release(uint64_t offset);
  // Blocks that were not released.
  size_t blocks() const { return blocks_.size(); }

 private:
  Result<uint64_t> map(uint64_t bytes);
  struct Free {
    uint64_t mapped;  // bytes; 0: from the heap
    void operator()(std::byte* memory) const;
  };
  uint64_t capacity_;
  uint64_t used_ = 0;
  struct Block {
    std::unique_ptr<std::byte, Free> memory;
    uint64_t bytes;
  };
  std::map<uint64_t, Block> blocks_;  // by offset, which is the address: every rank has the same address space
};

// One rank's view of its node.
class NodeMemory final : public ibcoll::NodeMemory {
 public:
  NodeMemory(Node& node, const Network& network, int rank, Reads reads)
      : node_(node), network_(network), rank_(rank), reads_(reads) {}

  Result<uint64_t> allocate(uint64_t bytes) override { return node_.allocate(bytes); }
  void release(uint64_t offset, uint64_t) override { node_.release(offset); }
  bool zeros(uint64_t) const override { return true; }
  Result<std::byte*> at(uint64_t offset, uint64_t) override {
    return reinterpret_cast<std::byte*>(static_cast<uintptr_t>(offset));
  }
  Status back(uint64_t, uint64_t) override { return {}; }
  bool back_all(uint64_t offset, uint64_t) override { return offset / 4096 % 2 == 0; }
  bool alive(int peer) const override;
  bool can_read(int peer) const override;
  Status read(int peer, uint64_t address, std::span<std::byte> into) override;
  Status confirm() override { return {}; }  // the dead keep their memory here

 private:
  bool one_of_some(int peer) const;

  Node& node_;
  const Network& network_;
  const int rank_;
  const Reads reads_;
};

// The node memories of all ranks of a network, `capacity` bytes for each node.
class Nodes {
 public:
  Nodes(const Network& network, Reads reads, uint64_t capacity = uint64_t{1} << 30);
  ibcoll::NodeMemory& memory(int rank) { return *memories_[static_cast<size_t>(rank)]; }
  size_t blocks() const;

 private:
  std::map<int, Node> nodes_;
  std::vector<std::unique_ptr<NodeMemory>> memories_;
};

}  // namespace ibcoll::sim
