// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/shm/node_memory.h"

#include <algorithm>

#include "runtime/shm/single_copy.h"

namespace ibcoll::shm {

// Stored where others find it if this rank dies before it can send the offset.
Result<uint64_t> NodeMemory::allocate(uint64_t bytes) {
  Result<uint64_t> offset = segment().reserve(bytes);
  if (offset.ok()) segment().info(ranks_.self()).window.store(*offset / kSegmentPage + 1, std::memory_order_release);
  return offset;
}

uint64_t NodeMemory::allocated_last(int peer) {
  const uint64_t window = segment().info(ranks_.local(peer)).window.load(std::memory_order_acquire);
  return window == 0 || window > kHeapBytes / kSegmentPage ? kNowhere : (window - 1) * kSegmentPage;
}

Status NodeMemory::read(int peer, uint64_t address, std::span<std::byte> into) {
  const int local = ranks_.local(peer);
  if (!ranks_.may_use(local))
    return error(IBCOLL_ERR_UNSUPPORTED, "shm: the kernel does not let this rank read the memory of rank {}", peer);
  Status status = read_process(ranks_.pid(local), address, into);
  if (status.ok()) {
    if (std::find(read_.begin(), read_.end(), local) == read_.end()) read_.push_back(local);
    return status;
  }
  if (status.code() == IBCOLL_ERR_PEER_FAILED || !ranks_.alive(local)) return gone(local);
  if (status.code() == IBCOLL_ERR_UNSUPPORTED) ranks_.refused(local, status);
  return error(IBCOLL_ERR_UNSUPPORTED, "{}", status.text());
}

Status NodeMemory::confirm() {
  const int ended = ranks_.first_ended(read_);
  read_.clear();
  return ended < 0 ? Status() : gone(ended);
}

Status NodeMemory::gone(int local) const {
  return error(IBCOLL_ERR_PEER_FAILED, "rank {} of the job failed: its process {} on this node is gone",
               ranks_.job(local), ranks_.pid(local));
}

}  // namespace ibcoll::shm
