// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/trace_lists.h"

#include <new>

namespace ibcoll {

size_t TraceLists::Hash::operator()(const std::vector<uint64_t>& counts) const noexcept {
  uint64_t digest = counts.size();
  for (const uint64_t count : counts) {
    digest = (digest ^ count) * 0x9e3779b97f4a7c15U;
    digest ^= digest >> 32;
  }
  return digest;
}

bool TraceLists::take(size_t bytes) noexcept {
  if (bytes > kMostBytes - bytes_) return false;
  bytes_ += bytes;
  return true;
}

void TraceLists::add_team(uint64_t epoch, std::span<const int> job_ranks) noexcept {
  if (teams_.contains(epoch) || !take(job_ranks.size_bytes())) return;
  try {
    teams_.emplace(epoch, std::vector<int>(job_ranks.begin(), job_ranks.end()));
  } catch (const std::bad_alloc&) {  // the trace then lacks that team
  }
}

uint32_t TraceLists::keep_counts(std::span<const uint64_t> counts) noexcept {
  try {
    looked_for_.assign(counts.begin(), counts.end());
    if (const auto known = numbers_.find(looked_for_); known != numbers_.end()) {
      ++lists_[known->second].calls;
      return known->second;
    }
    if (!take(counts.size_bytes() + kOfAList)) return kNone;
    if (free_.empty()) {
      lists_.emplace_back();
      free_.reserve(lists_.capacity());
      free_.push_back(static_cast<uint32_t>(lists_.size() - 1));
    }
    const uint32_t number = free_.back();
    lists_[number] = {&numbers_.emplace(looked_for_, number).first->first, 1};
    free_.pop_back();
    return number;
  } catch (const std::bad_alloc&) {
    return kNone;
  }
}

void TraceLists::drop_counts(uint32_t number) noexcept {
  List& list = lists_[number];
  if (--list.calls > 0) return;
  bytes_ -= list.sizes->size() * sizeof(uint64_t) + kOfAList;
  numbers_.erase(numbers_.find(*list.sizes));
  free_.push_back(number);
}

}  // namespace ibcoll
