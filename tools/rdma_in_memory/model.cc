// SPDX-License-Identifier: BSD-3-Clause
#include "tools/rdma_in_memory/model.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tools/rdma_in_memory/file.h"

namespace ibcoll::rdma_in_memory {
namespace {

double number(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? 0 : std::max(0.0, std::strtod(text, nullptr));
}

Model from_environment() {
  Model made;
  made.latency = number("RDMA_IN_MEMORY_LATENCY");
  made.per_byte = number("RDMA_IN_MEMORY_PER_BYTE");
  made.seed = static_cast<uint64_t>(number("RDMA_IN_MEMORY_SHUFFLE"));
  made.removed_after = number("RDMA_IN_MEMORY_REMOVED_AFTER");
  const char* const order = std::getenv("RDMA_IN_MEMORY_ORDER");
  made.in_order = !made.has_times() && (order == nullptr || std::strcmp(order, "no") != 0);
  return made;
}

}  // namespace

const Model& model() {
  static const Model only = from_environment();
  return only;
}

uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// The port of this process sends one message after the other.
uint64_t Model::arrival(size_t bytes) const {
  if (!has_times()) return 0;
  static Lock lock;
  static uint64_t port_free = 0;
  const std::lock_guard guard(lock);
  port_free = std::max(now_ns(), port_free) + static_cast<uint64_t>(static_cast<double>(bytes) * per_byte);
  return port_free + static_cast<uint64_t>(latency);
}

// SplitMix64: another stream for each process.
uint64_t Model::pick(uint64_t limit) const {
  static std::atomic<uint64_t> state{(seed + File::get().process()) * 0x9e3779b97f4a7c15};
  uint64_t value = state.fetch_add(0x9e3779b97f4a7c15);
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return (value ^ value >> 31) % limit;
}

void Model::copy_unordered(std::byte* to, const std::byte* from, size_t bytes) const {
  constexpr size_t kWord = sizeof(uint64_t);
  if (!shuffles() || bytes < 2 * kWord) {
    std::memcpy(to, from, bytes);
    return;
  }
  const size_t cut = kWord * (1 + pick(bytes / kWord - 1));  // the second part first
  std::memcpy(to + cut, from + cut, bytes - cut);
  std::memcpy(to, from, cut);
}

}  // namespace ibcoll::rdma_in_memory
