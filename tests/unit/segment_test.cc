// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/shm/segment.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace ibcoll::shm {
namespace {

constexpr uint64_t kMegabyte = 1 << 20;

class SegmentTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Segment>> made = Segment::create(3, 4096);
    ASSERT_TRUE(made.ok()) << made.status().text();
    segment_ = std::move(*made);
  }
  std::byte* allocated(uint64_t bytes) {
    Result<uint64_t> offset = segment_->allocate(bytes);
    EXPECT_TRUE(offset.ok()) << offset.status().text();
    return segment_->heap(*offset);
  }
  std::unique_ptr<Segment> segment_;
};

TEST_F(SegmentTest, HeapGetsMemoryInChunks) {
  EXPECT_EQ(segment_->heap_bytes(), 0u);
  std::byte* const small = allocated(4096);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(small) % kChunk, 0u) << "the heap begins with a whole chunk";
  EXPECT_EQ(segment_->heap_bytes(), 2 * kMegabyte);
  allocated(5 * kMegabyte);
  EXPECT_EQ(segment_->heap_bytes(), 6 * kMegabyte);
}

TEST_F(SegmentTest, AllOfAPartIsBackedUpToItsEnd) {
  Result<uint64_t> offset = segment_->reserve(3 * kMegabyte);
  ASSERT_TRUE(offset.ok());
  ASSERT_TRUE(segment_->map_heap(*offset, 3 * kMegabyte).ok());
  ASSERT_TRUE(segment_->back_all(*offset, 3 * kMegabyte));
  EXPECT_EQ(segment_->heap_bytes(), 4 * kMegabyte);
}

uint64_t locked_kilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmLck:") {
      uint64_t kilobytes = 0;
      status >> kilobytes;
      return kilobytes;
    }
  return 0;
}

TEST(SegmentAlone, IsNotMadeWholeWhereAllFutureMemoryIsLocked) {
  if (::mlockall(MCL_FUTURE) != 0) GTEST_SKIP() << "mlockall: " << std::strerror(errno);
  const uint64_t before = locked_kilobytes();
  const Result<std::unique_ptr<Segment>> made = Segment::create(3, 4096);
  const uint64_t after = locked_kilobytes();
  ::munlockall();
  if (!made.ok()) GTEST_SKIP() << made.status().text();  // without the right to lock as much, which it then names
  EXPECT_LT(after, before + 100 * 1024);
}

// A larger file would end the process by SIGXFSZ.
TEST(SegmentAlone, IsAsLargeAsFilesMayBe) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = 1024 * kMegabyte;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const Result<std::unique_ptr<Segment>> made = Segment::create(3, 4096);
  ::setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_TRUE(made.ok()) << made.status().text();
  EXPECT_LE(made.value()->heap_size(), 1024 * kMegabyte);
  EXPECT_GE(made.value()->heap_size(), 512 * kMegabyte);
}

// Bytes of the segment that this process may use.
uint64_t mapped_bytes() {
  uint64_t sum = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uint64_t begin = 0, end = 0;
    char may_write = '-';
    if (line.find("memfd:ibcoll") == std::string::npos) continue;
    if (std::sscanf(line.c_str(), "%lx-%lx r%c", &begin, &end, &may_write) == 3 && may_write == 'w') sum += end - begin;
  }
  return sum;
}

// A checker of memory pays for each byte that is mapped.
TEST_F(SegmentTest, IsMappedAsItIsUsed) {
  EXPECT_LT(mapped_bytes(), kMegabyte);
  ASSERT_TRUE(segment_->ensure_pair(0, 1).ok());
  EXPECT_LT(mapped_bytes(), kMegabyte);
  Result<uint64_t> offset = segment_->reserve(100 * kMegabyte);
  ASSERT_TRUE(offset.ok());
  ASSERT_TRUE(segment_->map_heap(*offset, 10 * kMegabyte).ok());
  EXPECT_GE(mapped_bytes(), 10 * kMegabyte);
  EXPECT_LT(mapped_bytes(), 13 * kMegabyte);
}

// Regions are exposed in every call; the kernel is asked once. Here it could not be asked again.
TEST_F(SegmentTest, APairThatHasItsMemoryCostsNoSystemCall) {
  ASSERT_TRUE(segment_->ensure_pair(0, 1).ok());
  int status = 1;
  const pid_t child = ::fork();
  if (child == 0) {
    for (int fd = 3; fd < 100; ++fd) ::close(fd);
    ::_exit(segment_->ensure_pair(0, 1).ok() && !segment_->ensure_pair(1, 0).ok() ? 0 : 1);
  }
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Teams come and go at the same offsets.
TEST_F(SegmentTest, PagesThatHaveTheirMemoryCostNoSystemCall) {
  Result<uint64_t> offset = segment_->reserve(kMegabyte);
  ASSERT_TRUE(offset.ok());
  const uint64_t page = *offset + 5 * kSegmentPage;
  ASSERT_TRUE(segment_->back(page, 2 * kSegmentPage).ok() && segment_->back(page + 10 * kSegmentPage, 1).ok());
  int status = 1;
  const pid_t child = ::fork();
  if (child == 0) {
    for (int fd = 3; fd < 100; ++fd) ::close(fd);
    const auto has = [&](uint64_t from, uint64_t bytes) { return segment_->back(from, bytes).ok(); };
    const bool all = has(page, 2 * kSegmentPage) && has(page + kSegmentPage, 1) && has(page + 10 * kSegmentPage, 1);
    const bool more = has(page, 3 * kSegmentPage) || has(page - kSegmentPage, 1) || has(page + 11 * kSegmentPage, 1);
    ::_exit(all && !more ? 0 : 1);
  }
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(SegmentTest, HasRoomForAThousandWindows) {
  constexpr uint64_t kWindow = 18'700'000;  // of 16 ranks
  for (int i = 0; i < 1000; ++i) {
    Result<uint64_t> offset = segment_->reserve(kWindow);
    ASSERT_TRUE(offset.ok()) << "window " << i << ": " << offset.status().text();
    ASSERT_TRUE(segment_->back(*offset, 4096).ok());
    Result<std::byte*> memory = segment_->map_heap(*offset, kWindow);
    ASSERT_TRUE(memory.ok()) << memory.status().text();
    **memory = std::byte(1);
    EXPECT_EQ(*memory, segment_->heap(*offset));
  }
  EXPECT_EQ(segment_->heap_bytes(), 0u);
  EXPECT_TRUE(segment_->map_heap(segment_->heap_size() - 4096, 4096).ok());
  EXPECT_EQ(segment_->map_heap(segment_->heap_size() - 4096, 8192).status().code(), IBCOLL_ERR_INTERNAL);
}

// A window of two units and a page, beside a small one.
void expect_a_large_window_is_contiguous(Segment& segment) {
  const uint64_t unit = segment.unit();
  Result<uint64_t> small = segment.allocate(4096);
  ASSERT_TRUE(small.ok());
  *segment.heap(*small) = std::byte(1);
  Result<uint64_t> large = segment.reserve(2 * unit + 4096);
  ASSERT_TRUE(large.ok());
  Result<std::byte*> memory = segment.map_heap(*large, 2 * unit + 4096);
  ASSERT_TRUE(memory.ok()) << memory.status().text();
  ASSERT_TRUE(segment.back(*large + 2 * unit, 4096).ok());
  (*memory)[2 * unit] = std::byte(7);
  EXPECT_EQ(*segment.heap(*large + 2 * unit), std::byte(7));
  EXPECT_EQ(*segment.heap(*small), std::byte(1));
}

TEST_F(SegmentTest, MoreThanAUnitIsContiguous) {
  EXPECT_EQ(segment_->unit(), kUnit);
  expect_a_large_window_is_contiguous(*segment_);
}

// As after `ulimit -v`.
TEST(SegmentOfAProcessWithALimit, TakesAddressSpaceInSmallUnits) {
  constexpr uint64_t kLeft = 256 * kMegabyte;
  const pid_t child = ::fork();
  if (child == 0) {
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t limit = pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) + kLeft;
    const rlimit both{limit, limit};
    EXPECT_EQ(::setrlimit(RLIMIT_AS, &both), 0);
    Result<std::unique_ptr<Segment>> made = Segment::create(3, 4096);
    EXPECT_TRUE(made.ok()) << made.status().text();
    if (made.ok()) {
      EXPECT_LE((*made)->unit(), kLeft / 8);
      expect_a_large_window_is_contiguous(**made);
    }
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// What is cut off would be a SIGBUS for each process that touches it.
TEST_F(SegmentTest, CannotBeCutOff) {
  int tried = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code failure;
    if (std::filesystem::read_symlink(entry, failure).string().find("memfd:ibcoll") == std::string::npos) continue;
    ++tried;
    EXPECT_NE(::truncate(entry.path().c_str(), 4096), 0);
    EXPECT_EQ(errno, EPERM);
  }
  EXPECT_GT(tried, 0);
}

// As under a profiler, which sends a signal every now and then.
TEST_F(SegmentTest, MemoryIsHadAlthoughSignalsComeAllTheTime) {
  struct sigaction before {};
  struct sigaction counted {};
  counted.sa_handler = [](int) {};
  ::sigaction(SIGPROF, &counted, &before);
  timer_t timer{};
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGPROF;
  ASSERT_EQ(::timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
  const itimerspec every{{0, 200'000}, {0, 200'000}};
  ::timer_settime(timer, 0, &every, nullptr);
  std::byte* const memory = allocated(64 * kMegabyte);
  ::timer_delete(timer);
  ::sigaction(SIGPROF, &before, nullptr);
  EXPECT_TRUE(std::all_of(memory, memory + 64 * kMegabyte, [](std::byte b) { return b == std::byte(0); }));
}

TEST_F(SegmentTest, MemoryIsZeroAtFirstAndKeptWhenItIsGivenBack) {
  constexpr uint64_t kBytes = 3 * kMegabyte;
  Result<uint64_t> offset = segment_->allocate(kBytes);
  ASSERT_TRUE(offset.ok());
  std::byte* const memory = segment_->heap(*offset);
  EXPECT_TRUE(std::all_of(memory, memory + kBytes, [](std::byte b) { return b == std::byte{0}; }));
  std::fill_n(memory, kBytes, std::byte{7});
  segment_->release(*offset, kBytes);
  EXPECT_EQ(allocated(kBytes + 4096), memory);
  EXPECT_TRUE(std::all_of(memory, memory + kBytes, [](std::byte b) { return b == std::byte{7}; }));
  EXPECT_EQ(segment_->heap_bytes(), 4 * kMegabyte);
}

}  // namespace
}  // namespace ibcoll::shm
