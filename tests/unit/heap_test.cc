// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/shm/heap.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <random>

namespace ibcoll::shm {
namespace {

constexpr uint64_t kBytes = uint64_t{1} << 20;

class HeapTest : public testing::Test {
 protected:
  HeapTest() { heap().prepare(kBytes, kBytes); }
  ~HeapTest() override { ::munmap(memory_, sizeof(Heap)); }
  Heap& heap() { return *static_cast<Heap*>(memory_); }
  uint64_t take(uint64_t bytes) {
    Result<uint64_t> offset = heap().take(bytes);
    EXPECT_TRUE(offset.ok()) << offset.status().text();
    return offset.ok() ? *offset : kBytes;
  }

 private:
  void* memory_ = ::mmap(nullptr, sizeof(Heap), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
};

TEST_F(HeapTest, GivesOutEverythingOnce) {
  EXPECT_EQ(take(kBytes), 0u);
  const Result<uint64_t> more = heap().take(1);
  EXPECT_EQ(more.status().code(), IBCOLL_ERR_NO_MEMORY);
  EXPECT_NE(more.status().text().find("no 1 bytes left"), std::string::npos) << more.status().text();
  heap().give_back(0, kBytes);
  EXPECT_EQ(take(kBytes), 0u);
}

// Whatever the order, nothing is given out twice, and in the end all is one block again.
TEST_F(HeapTest, JoinsWhatIsGivenBack) {
  std::mt19937 random(1);
  std::map<uint64_t, uint64_t> taken;  // offset, bytes
  for (int i = 0; i < 20'000; ++i) {
    if (taken.size() < 50 && random() % 2) {
      const uint64_t bytes = 1 + random() % 10'000, offset = take(bytes);
      const auto [at, is_new] = taken.emplace(offset, bytes);
      ASSERT_TRUE(is_new && offset + bytes <= kBytes);
      ASSERT_TRUE(std::next(at) == taken.end() || offset + bytes <= std::next(at)->first);
      ASSERT_TRUE(at == taken.begin() || std::prev(at)->first + std::prev(at)->second <= offset);
    } else if (!taken.empty()) {
      const auto at = std::next(taken.begin(), static_cast<long>(random() % taken.size()));
      heap().give_back(at->first, at->second);
      taken.erase(at);
    }
  }
  for (const auto& [offset, bytes] : taken) heap().give_back(offset, bytes);
  EXPECT_EQ(take(kBytes), 0u);
}

TEST_F(HeapTest, GivesOutNothingAcrossUnits) {
  heap().prepare(kBytes, kBytes / 4);
  EXPECT_EQ(take(1000), 0u);
  EXPECT_EQ(take(kBytes / 4), kBytes / 4);
  EXPECT_EQ(take(kBytes / 2), kBytes / 2) << "more than a unit begins at one";
  EXPECT_EQ(take(kBytes / 4 - 1000), 1000u);
  EXPECT_EQ(heap().take(1).status().code(), IBCOLL_ERR_NO_MEMORY);
  heap().give_back(kBytes / 4, kBytes / 4);
  EXPECT_EQ(take(kBytes / 4), kBytes / 4);
}

// Whatever another process of the user, or a program that runs wild, has written there.
TEST_F(HeapTest, NamesWhatIsSpoiled) {
  take(1000);
  std::mt19937_64 random(1);
  int named = 0;
  for (int i = 0; i < 300; ++i) {
    auto* const words = reinterpret_cast<uint64_t*>(&heap());
    const bool all = i % 3 == 0;
    for (size_t at = 1; at < sizeof(Heap) / sizeof(uint64_t); ++at)
      if (all || random() % 50 == 0) words[at] = random();
    const Result<uint64_t> taken = heap().take(16);
    heap().give_back(random(), 16);
    if (taken.ok()) continue;
    ++named;
    if (taken.status().code() == IBCOLL_ERR_NO_MEMORY) continue;
    EXPECT_NE(taken.status().text().find("is spoiled"), std::string::npos) << taken.status().text();
  }
  EXPECT_GT(named, 100);
}

// One word that is spoiled, whichever it is, leads to no memory that is not the heap's.
TEST_F(HeapTest, GivesOutNothingBeyondItsEnd) {
  std::mt19937_64 random(1);
  for (size_t at = 1; at < sizeof(Heap) / sizeof(uint64_t); ++at) {
    heap().prepare(kBytes, kBytes);
    for (uint64_t i = 0; i < 10; ++i) take(1000);
    for (uint64_t i = 0; i < 10; i += 2) heap().give_back(1000 * i, 1000);
    reinterpret_cast<uint64_t*>(&heap())[at] = random();
    Result<uint64_t> taken = heap().take(16);
    ASSERT_LE(taken.ok() ? *taken : 0, kBytes - 16) << "word " << at;
  }
}

// What a full list cannot hold is lost, and nothing else.
TEST_F(HeapTest, LosesWhatTheListHasNoPlaceFor) {
  for (uint64_t i = 0; i < 4000; ++i) EXPECT_EQ(take(1), i);
  for (uint64_t i = 0; i < 4000; i += 2) heap().give_back(i, 1);
  for (uint64_t i = 0; i < 999; ++i) EXPECT_EQ(take(1), 2 * i);
  EXPECT_EQ(take(kBytes - 4000), 4000u);
}

// Processes that are killed at any moment, most often while they hold the lock, take nothing along but what they had.
TEST_F(HeapTest, OutlivesTheDeathOfItsUsers) {
  const uint64_t mine = take(1000);
  for (int i = 0; i < 100; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (;;) {
        Result<uint64_t> offset = heap().take(8);
        if (offset.ok()) heap().give_back(*offset, 8);
      }
    }
    ::usleep(static_cast<useconds_t>(500 + i * 7));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    Result<uint64_t> offset = heap().take(16);
    ASSERT_TRUE(offset.ok()) << offset.status().text();
    EXPECT_GE(*offset, mine + 1000);
    heap().give_back(*offset, 16);
  }
  EXPECT_LE(take(kBytes - 1000 - 100 * 8), mine + 1000 + 100 * 8) << "no more is lost than the dead had";
}

}  // namespace
}  // namespace ibcoll::shm
