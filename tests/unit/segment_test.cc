// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/shm/segment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string>

namespace ibcoll {
namespace {

constexpr uint64_t kMegabyte = 1 << 20;

// MADV_COLLAPSE, asked of the kernel on memory of this kind.
bool kernel_makes_huge_pages() {
  const int fd = ::memfd_create("ibcoll test", MFD_CLOEXEC);
  EXPECT_EQ(::ftruncate(fd, 2 * kChunk), 0);
  EXPECT_EQ(::fallocate(fd, 0, 0, 2 * kChunk), 0);
  void* const memory = ::mmap(nullptr, 2 * kChunk, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  const auto start = reinterpret_cast<uintptr_t>(memory);
  // Where the file's huge pages are the mapping's, too; at worst none is found here.
  const bool makes = start % kChunk == 0 && ::madvise(memory, kChunk, 25) == 0;
  ::munmap(memory, 2 * kChunk);
  ::close(fd);
  return makes;
}

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

TEST_F(SegmentTest, HeapHasMemoryInHugePagesWhereTheKernelMakesThem) {
  EXPECT_EQ(segment_->heap_bytes(), 0u);
  std::byte* const small = allocated(4096);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(small) % kChunk, 0u) << "the heap begins with a whole huge page";
  EXPECT_EQ(segment_->heap_bytes(), 2 * kMegabyte);
  allocated(5 * kMegabyte);
  EXPECT_EQ(segment_->heap_bytes(), 6 * kMegabyte);
  if (kernel_makes_huge_pages())
    EXPECT_EQ(segment_->huge_bytes(), segment_->heap_bytes());
  else
    EXPECT_LE(segment_->huge_bytes(), segment_->heap_bytes());
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
  if (!made.ok()) GTEST_SKIP() << made.status().text();  // for want of the right to lock so much, which it then names
  EXPECT_LT(after, before + 100 * 1024);
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
}  // namespace ibcoll
