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

uint32_t TraceLists::add_counts(std::span<const uint64_t> counts) noexcept {
  try {
    looked_for_.assign(counts.begin(), counts.end());
    if (const auto known = numbers_.find(looked_for_); known != numbers_.end()) return known->second;
    if (!take(counts.size_bytes())) return kNone;
    counts_.reserve(counts_.size() + 1);
    const auto [added, is_new] = numbers_.emplace(looked_for_, static_cast<uint32_t>(counts_.size()));
    counts_.push_back(&added->first);
    return added->second;
  } catch (const std::bad_alloc&) {
    return kNone;
  }
}

}  // namespace ibcoll
