// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/sim/node_memory.h"

#include <sys/mman.h>

#include <cstring>

#include "runtime/machine/simulation.h"
#include "runtime/sim/network.h"

namespace ibcoll::sim {

namespace {
constexpr uint64_t kPage = 4096;
// Segments of this size and more are mapped, so that only pages that are touched take memory and time: of windows most
// are not.
constexpr uint64_t kMapped = 64 << 10;
}  // namespace

Result<uint64_t> Node::allocate(uint64_t bytes) {
  const uint64_t wanted = (bytes + kPage - 1) / kPage * kPage;
  if (wanted < bytes || wanted > capacity_ - used_) {
    return error(IBCOLL_ERR_NO_MEMORY, "sim: node memory: {} bytes asked for, {} of {} left", bytes, capacity_ - used_,
                 capacity_);
  }
  if (wanted >= kMapped) return map(wanted);
  std::byte* const memory = static_cast<std::byte*>(std::aligned_alloc(kPage, wanted ? wanted : kPage));
  if (!memory) return error(IBCOLL_ERR_NO_MEMORY, "sim: node memory: no {} bytes on the heap", wanted);
  std::memset(memory, 0, wanted ? wanted : kPage);
  used_ += wanted;
  const uint64_t offset = reinterpret_cast<uintptr_t>(memory);
  blocks_.emplace(offset, Block{std::unique_ptr<std::byte, Free>(memory, Free{0}), wanted});
  return offset;
}

Result<uint64_t> Node::map(uint64_t bytes) {
  // The page behind it stays without access: what is written beyond the end does not go unseen.
  void* const memory = mmap(nullptr, bytes + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return error(IBCOLL_ERR_NO_MEMORY, "sim: node memory: no {} bytes of addresses", bytes);
  std::unique_ptr<std::byte, Free> block(static_cast<std::byte*>(memory), Free{bytes + kPage});
  if (mprotect(memory, bytes, PROT_READ | PROT_WRITE) != 0)
    return error(IBCOLL_ERR_NO_MEMORY, "sim: node memory: no {} bytes of memory", bytes);
  used_ += bytes;
  const auto offset = reinterpret_cast<uint64_t>(memory);
  blocks_.emplace(offset, Block{std::move(block), bytes});
  return offset;
}

void Node::Free::operator()(std::byte* memory) const {
  if (mapped > 0)
    munmap(memory, mapped);
  else
    std::free(memory);
}

void Node::release(uint64_t offset) {
  const auto block = blocks_.find(offset);
  if (block == blocks_.end()) return;
  used_ -= block->second.bytes;
  blocks_.erase(block);
}

bool NodeMemory::can_read(int peer) const {
  switch (reads_) {
    case Reads::kAll:
    case Reads::kSomeFail:
      return true;
    case Reads::kNone:
      return false;
    case Reads::kSomePairs:
      break;
  }
  return one_of_some(peer);
}

bool NodeMemory::alive(int peer) const { return network_.alive(peer); }

bool NodeMemory::one_of_some(int peer) const {
  const uint64_t ranks = static_cast<uint64_t>(rank_) << 32 | static_cast<uint64_t>(peer);
  return peer == rank_ || mix64(network_.params().seed ^ mix64(ranks)) % 2 == 0;
}

Status NodeMemory::read(int peer, uint64_t address, std::span<std::byte> into) {
  if (reads_ == Reads::kSomeFail && !one_of_some(peer))
    return error(IBCOLL_ERR_SYSTEM, "rank {}: sim: reading the memory of rank {} failed", rank_, peer);
  if (!can_read(peer)) {
    return error(IBCOLL_ERR_UNSUPPORTED, "rank {}: sim: may not read the memory of rank {}", rank_, peer);
  }
  if (!network_.alive(peer)) {
    return error(IBCOLL_ERR_PEER_FAILED, "rank {}: sim: reading the memory of rank {}: it is dead", rank_, peer);
  }
  if (!into.empty() &&
      !work_is_simulated(into.data(), reinterpret_cast<const void*>(static_cast<uintptr_t>(address)), into.size()))
    std::memcpy(into.data(), reinterpret_cast<const void*>(static_cast<uintptr_t>(address)), into.size());
  return {};
}

Nodes::Nodes(const Network& network, Reads reads, uint64_t capacity) {
  for (int rank = 0; rank < network.size(); ++rank) {
    const int number = network.node(rank);
    Node& node = nodes_.try_emplace(number, capacity).first->second;
    memories_.push_back(std::make_unique<NodeMemory>(node, network, rank, reads));
  }
}

size_t Nodes::blocks() const {
  size_t sum = 0;
  for (const auto& [number, node] : nodes_) sum += node.blocks();
  return sum;
}

}  // namespace ibcoll::sim
