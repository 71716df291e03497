// SPDX-License-Identifier: BSD-3-Clause
#include "perf/ibcoll_perf/buffers.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>

namespace ibcoll::perf {
namespace {

// Sum of the fields of a /proc file whose lines read "Name:   123 kB", in bytes.
uint64_t proc_bytes(const char* path, std::initializer_list<std::string_view> names) {
  std::ifstream file(path);
  uint64_t sum = 0;
  for (std::string line; std::getline(file, line);) {
    for (const std::string_view name : names) {
      if (line.starts_with(name) && line[name.size()] == ':') {
        sum += std::strtoull(line.c_str() + name.size() + 1, nullptr, 10) * 1024;
      }
    }
  }
  return sum;
}

}  // namespace

Buffers::~Buffers() {
  give_back(send_);
  give_back(recv_);
}

std::span<std::byte> Buffers::take(uint64_t bytes) {
  constexpr size_t kPage = 4096;
  const uint64_t rounded = (bytes / kPage + 1) * kPage;
  void* memory = context_ != nullptr ? ibcoll_mem_alloc(context_, rounded) : std::aligned_alloc(kPage, rounded);
  if (memory == nullptr) return {};
  std::memset(memory, 1, rounded);
  return {static_cast<std::byte*>(memory), rounded};
}

void Buffers::give_back(std::span<std::byte> memory) {
  if (context_ == nullptr) {
    std::free(memory.data());
  } else {
    (void)ibcoll_mem_free(context_, memory.data());
  }
}

std::string Buffers::allocate(ibcoll_context_t context, uint64_t send_bytes, uint64_t recv_bytes) {
  context_ = context;
  send_ = take(send_bytes);
  recv_ = take(recv_bytes);
  if (send_.empty() || recv_.empty()) {
    return fmt::format("no memory for buffers of {} and {} bytes; try a smaller --bytes", send_bytes, recv_bytes);
  }
  return {};
}

uint64_t available_memory() {
  const uint64_t bytes = proc_bytes("/proc/meminfo", {"MemAvailable"});
  return bytes == 0 ? std::numeric_limits<uint64_t>::max() : bytes;
}

uint64_t private_memory() { return proc_bytes("/proc/self/smaps_rollup", {"Private_Clean", "Private_Dirty"}); }

}  // namespace ibcoll::perf
