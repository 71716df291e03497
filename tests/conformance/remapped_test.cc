// SPDX-License-Identifier: BSD-3-Clause
// Memory that is unmapped between two puts, with other memory mapped at its address: what a transport keeps of the old
// pages, as a registration does, must not reach the new ones' traffic. Both sides, and the ways in which programs do
// it.
#include <sys/mman.h>

#include <cstdlib>

#include <nlohmann/json.hpp>

#include "runtime/base/json.h"
#include "tests/conformance/world.h"

namespace ibcoll::conformance {
namespace {

constexpr size_t kBytes = 256 * 1024;

// With UCX before 1.15 a cache keeps memory of the program only then.
[[maybe_unused]] const int has_memory_events = ::setenv("UCX_MEM_EVENTS", "y", 0);

class Mapping {
 public:
  Mapping() : memory_(map(nullptr, 0)) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { ::munmap(memory_, kBytes); }
  bool made() const { return memory_ != MAP_FAILED; }
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(memory_), kBytes}; }

  bool unmap_and_map() { return ::munmap(memory_, kBytes) == 0 && map(memory_, MAP_FIXED_NOREPLACE) == memory_; }
  bool map_over() { return map(memory_, MAP_FIXED) == memory_; }
  bool drop_pages() { return ::madvise(memory_, kBytes, MADV_DONTNEED) == 0; }

 private:
  static void* map(void* at, int how) {
    return ::mmap(at, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | how, -1, 0);
  }
  void* memory_;
};

constexpr bool (Mapping::*kWays[])() = {&Mapping::unmap_and_map, &Mapping::map_over, &Mapping::drop_pages};

class RemappedTest : public TransportTest {
 protected:
  // Calls `transfer` with a mapping of rank 0 or 1, then again after each way of changing its pages.
  void each_way(const std::function<void(World&, std::span<std::byte>, uint64_t id)>& transfer) {
    auto world = make_world(2);
    ASSERT_TRUE(world);
    Mapping mapping;
    ASSERT_TRUE(mapping.made());
    uint64_t id = 1;
    ASSERT_NO_FATAL_FAILURE(transfer(*world, mapping.bytes(), id++));
    for (const auto way : kWays) {
      ASSERT_TRUE((mapping.*way)());
      ASSERT_NO_FATAL_FAILURE(transfer(*world, mapping.bytes(), id)) << "way " << id - 1;
      ++id;
    }
  }

  // Puts `from` into `to`, and looks at what came.
  static void expect_through(World& world, std::span<std::byte> from, std::span<std::byte> to, uint64_t id) {
    fill(from, id);
    const RemoteRegion region = world.at(1).expose(0, to);
    if (region.key == 0) GTEST_SKIP() << "no puts between these ranks";
    ASSERT_TRUE(world.put(0, 1, region, from, Note{}));
    ASSERT_TRUE(world.pump_until([&] { return !world.got(1).empty(); }));
    world.got(1).clear();
    world.at(1).conceal(0, region);
    ASSERT_EQ(first_wrong(to, id), to.size()) << "these are not the bytes that were sent";
  }
};

TEST_P(RemappedTest, Source) {
  std::vector<std::byte> target(kBytes);
  each_way([&](World& world, std::span<std::byte> source, uint64_t id) {
    ASSERT_NO_FATAL_FAILURE(expect_through(world, source, target, id));
    const std::span<std::byte> part = source.subspan(4096, 100'000);
    ASSERT_NO_FATAL_FAILURE(expect_through(world, part, std::span(target).first(part.size()), id + 100));
#ifndef __SANITIZE_ADDRESS__  // which hooks the calls that the cache listens to: then it keeps no user memory
    // Where a cache is part of it, it has kept the old pages, and let them go.
    const nlohmann::json described = nlohmann::json::parse(world.at(0).describe().dump());
    if (!described.contains("registration_cache")) return;
    const nlohmann::json& cache = described["registration_cache"];
    EXPECT_EQ(cache.value("keeps", ""), "all memory") << cache;
    EXPECT_GE(cache.value("hits", uint64_t{0}), id) << cache;
    EXPECT_GE(cache.value("invalidations", uint64_t{0}), id - 1) << cache;
#endif
  });
}

TEST_P(RemappedTest, Target) {
  std::vector<std::byte> source(kBytes);
  each_way([&](World& world, std::span<std::byte> target, uint64_t id) { expect_through(world, source, target, id); });
}

INSTANTIATE_TEST_SUITE_P(Transports, RemappedTest, ::testing::ValuesIn(makers()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ibcoll::conformance
