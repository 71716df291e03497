// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/scratch_pool.h"

#include <algorithm>
#include <functional>

#include "runtime/machine/user_memory.h"

namespace ibcoll {
namespace {

constexpr size_t kUnit = 4096;  // bytes

}  // namespace

ScratchPool::Block ScratchPool::remove(size_t at) noexcept {
  const Block block = idle_[at];
  std::copy(idle_.begin() + at + 1, idle_.begin() + count_, idle_.begin() + at);
  --count_;
  idle_bytes_ -= block.bytes;
  return block;
}

void ScratchPool::free_down_to(size_t blocks, size_t bytes) noexcept {
  while (count_ > blocks || idle_bytes_ > bytes) (void)free_memory(remove(0).memory);
}

size_t ScratchPool::most_idle_bytes() const noexcept {
  std::array<size_t, kRuns> peaks = peaks_;
  std::nth_element(peaks.begin(), peaks.begin() + 1, peaks.end(), std::greater<>());
  const size_t repeated = peaks[1];
  return repeated > kMostIdleBytes ? std::min(repeated + kMostIdleBytes, kMostIdleBytesOfRuns) : kMostIdleBytes;
}

void* ScratchPool::take(size_t& bytes) noexcept {
  void* const block = find_or_make(bytes);
  if (!block) return nullptr;
  used_bytes_ += bytes;
  peaks_[run_] = std::max(peaks_[run_], used_bytes_);
  return block;
}

void* ScratchPool::find_or_make(size_t& bytes) noexcept {
  const size_t whole = (bytes + kUnit - 1) / kUnit * kUnit;
  size_t best = count_;
  for (size_t i = count_; i-- > 0;) {  // of equal ones the last, which caches may still have
    const size_t other = idle_[i].bytes;
    if (other >= whole && other <= 2 * whole && (best == count_ || other < idle_[best].bytes)) best = i;
  }
  if (best < count_) {
    const Block found = remove(best);
    bytes = found.bytes;
    return found.memory;
  }
  Result<void*> made = allocate_memory(whole);
  if (!made.ok() && count_ > 0) {
    free_down_to(0, 0);
    made = allocate_memory(whole);
  }
  bytes = whole;
  return made.ok() ? made.value() : nullptr;
}

void ScratchPool::give_back(void* block, size_t bytes) noexcept {
  if (const size_t most = most_idle_bytes(); bytes <= most) {
    free_down_to(kMostIdle - 1, most - bytes);
    idle_[count_++] = {block, bytes};
    idle_bytes_ += bytes;
  } else {
    (void)free_memory(block);
  }
  used_bytes_ -= bytes;
  if (used_bytes_ > 0) return;
  run_ = (run_ + 1) % kRuns;
  peaks_[run_] = 0;
}

}  // namespace ibcoll
