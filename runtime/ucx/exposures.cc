// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/ucx/exposures.h"

#include "runtime/base/hash.h"

namespace ibcoll::ucx {

RemoteRegion Exposures::add(int peer, std::span<std::byte> memory, Registration* pinned) {
  if (free_.empty()) {
    if (table_.size() >= (size_t{1} << kIndexBits) - 1) return {};
    table_.emplace_back();
    free_.reserve(table_.capacity());  // for remove(), which cannot fail
    free_.push_back(static_cast<uint32_t>(table_.size() - 1));
  }
  const uint32_t index = free_.back();
  free_.pop_back();
  state_ += kGoldenRatio;
  const uint64_t key = (scramble(state_) << kIndexBits) | (index + 1);  // never 0
  table_[index] = Exposure{.key = key, .peer = peer, .memory = memory, .pinned = pinned};
  ++count_;
  return {reinterpret_cast<uint64_t>(memory.data()), memory.size(), key};
}

Exposures::Exposure* Exposures::find(uint64_t key) {
  const uint64_t number = key & ((uint64_t{1} << kIndexBits) - 1);
  if (key == 0 || number == 0 || number > table_.size()) return nullptr;
  Exposure& exposure = table_[number - 1];
  return exposure.key == key ? &exposure : nullptr;
}

Exposures::Exposure* Exposures::find(uint64_t key, int peer, uint64_t address, size_t bytes) {
  Exposure* exposure = find(key);
  if (exposure == nullptr || exposure->peer != peer) return nullptr;
  const uint64_t offset = address - reinterpret_cast<uint64_t>(exposure->memory.data());
  if (offset > exposure->memory.size() || bytes > exposure->memory.size() - offset) return nullptr;
  return exposure;
}

void Exposures::remove(uint64_t key) {
  Exposure* exposure = find(key);
  if (exposure == nullptr) return;
  free_.push_back(static_cast<uint32_t>(exposure - table_.data()));
  *exposure = Exposure{};
  --count_;
}

}  // namespace ibcoll::ucx
