// SPDX-License-Identifier: BSD-3-Clause
// Real unmappings and the events of UCX. Skipped, with the reason, only where events cannot exist: no UCX, a sanitizer.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/registration_cache/hooked_function.h"
#include "runtime/registration_cache/memory_events.h"
#include "runtime/registration_cache/unmap_trial.h"
#include "tests/unit/recording_registrar.h"

namespace ibcoll {
namespace {

std::byte* map(size_t bytes, void* where = nullptr) {
  void* const got = ::mmap(where, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | (where == nullptr ? 0 : MAP_FIXED_NOREPLACE), -1, 0);
  return got == MAP_FAILED ? nullptr : static_cast<std::byte*>(got);
}

class MemoryEventsTest : public testing::Test {
 protected:
  static constexpr std::array kCrashes{SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGHUP};

  void SetUp() override {
    for (size_t i = 0; i < kCrashes.size(); ++i) ::sigaction(kCrashes[i], nullptr, &before_[i]);
    auto events = MemoryEvents::start(cache_.unmapped());
    if (!events.ok()) {
      const std::string& why = events.status().text();
      if (why.find("not installed") != std::string::npos || why.find("not there when") != std::string::npos ||
          why.find("sanitizer") != std::string::npos)
        GTEST_SKIP() << why;
      FAIL() << why;
    }
    events_ = std::move(*events);
  }
  void* handle_of(std::byte* memory, size_t bytes) {
    Result<Registration*> got = cache_.acquire({memory, bytes});
    EXPECT_TRUE(got.ok()) << got.status().text();
    void* const handle = (*got)->handle();
    cache_.release(*got);
    return handle;
  }
  // Is what was pinned for [memory, memory + bytes) unpinned after `action`?
  template <typename Action>
  bool loses(std::byte* memory, size_t bytes, Action action) {
    void* const handle = handle_of(memory, bytes);
    EXPECT_EQ(handle_of(memory, bytes), handle);
    action();
    cache_.collect();
    return !registrar_.holds(handle);
  }

  RecordingRegistrar registrar_;
  RegistrationCache cache_{registrar_, {}};
  std::array<struct sigaction, kCrashes.size()> before_{};
  std::unique_ptr<MemoryEvents> events_;
};

TEST_F(MemoryEventsTest, TheSameAddressMappedAgainIsPinnedAgain) {
  std::byte* const memory = map(16 * kPage);
  ASSERT_NE(memory, nullptr);
  void* const old = handle_of(memory, 16 * kPage);
  ASSERT_EQ(::munmap(memory, 16 * kPage), 0);
  ASSERT_EQ(map(16 * kPage, memory), memory);
  EXPECT_NE(handle_of(memory, 16 * kPage), old);
  EXPECT_FALSE(registrar_.holds(old));
  EXPECT_TRUE(events_->intact());
  ::munmap(memory, 16 * kPage);
}

TEST_F(MemoryEventsTest, EveryWayToLosePagesIsSeen) {
  constexpr size_t kBytes = 8 * kPage;
  std::byte* memory = map(kBytes);
  EXPECT_TRUE(loses(memory, kBytes, [&] { ::munmap(memory + 3 * kPage, kPage); })) << "munmap of a part";
  ::munmap(memory, kBytes);
  memory = map(kBytes);
  EXPECT_TRUE(loses(memory, kBytes, [&] {
    ::mmap(memory + kPage, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  })) << "mmap over it";
  EXPECT_TRUE(loses(memory, kBytes, [&] { ::madvise(memory + kPage, kPage, MADV_DONTNEED); })) << "madvise";
  EXPECT_TRUE(loses(memory, kBytes, [&] {
    memory = static_cast<std::byte*>(::mremap(memory, kBytes, 64 * kBytes, MREMAP_MAYMOVE));
  })) << "mremap";
  EXPECT_TRUE(loses(memory, kBytes, [&] { std::thread([&] { ::munmap(memory, 64 * kBytes); }).join(); }))
      << "munmap by another thread";
  const int id = ::shmget(IPC_PRIVATE, kBytes, IPC_CREAT | 0600);
  ASSERT_GE(id, 0);
  memory = static_cast<std::byte*>(::shmat(id, nullptr, 0));
  ::shmctl(id, IPC_RMID, nullptr);
  EXPECT_TRUE(loses(memory, kBytes, [&] { ::shmdt(memory); })) << "shmdt";
}

TEST_F(MemoryEventsTest, MemoryThatIsMovedToAGivenPlaceGoesThereAndBothPlacesAreLost) {
  constexpr size_t kBytes = 8 * kPage;
  constexpr int kMove = MREMAP_MAYMOVE | MREMAP_FIXED;
  std::byte* const from = map(kBytes);
  std::byte* const to = map(kBytes);
  from[kPage] = std::byte{7};
  void* const source = handle_of(from, kBytes);
  EXPECT_TRUE(loses(to, kBytes, [&] { EXPECT_EQ(::mremap(from, kBytes, kBytes, kMove, to), to); }));
  EXPECT_FALSE(registrar_.holds(source));
  EXPECT_EQ(to[kPage], std::byte{7});
  EXPECT_EQ(::msync(from, kBytes, MS_ASYNC), -1) << "it is still mapped";

  // What the system refuses is refused, and harms nothing.
  EXPECT_EQ(::mremap(to, kBytes, kBytes, kMove, to + kPage), MAP_FAILED) << "onto itself";
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(::mremap(to, kBytes, kBytes, kMove, from + 1), MAP_FAILED) << "not at a page";
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(::mremap(from, kBytes, kBytes, kMove, to), MAP_FAILED) << "from where nothing is";
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(to[kPage], std::byte{7});

  std::byte* const kept =
      static_cast<std::byte*>(::mremap(to, kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, nullptr));
  ASSERT_NE(kept, MAP_FAILED);
  EXPECT_EQ(kept[kPage], std::byte{7});
  EXPECT_EQ(to[kPage], std::byte{0});
  ::munmap(kept, kBytes);
  ::munmap(to, kBytes);
}

TEST_F(MemoryEventsTest, FreedMemoryIsSeen) {
  constexpr size_t kLarge = size_t{64} << 20;  // always a mapping of its own
  auto* const large = static_cast<std::byte*>(std::malloc(kLarge));
  EXPECT_TRUE(loses(large, kLarge, [&] { std::free(large); }));
  // From the heap, whose end goes back to the system when enough of it is free. Blocks pushed up to the end of it.
  std::vector<std::byte*> blocks;
  for (int i = 0; i < 400; ++i) blocks.push_back(static_cast<std::byte*>(std::malloc(100'000)));
  std::byte* const highest = *std::max_element(blocks.begin(), blocks.end());
  auto* const heap_end = static_cast<std::byte*>(::sbrk(0));
  const bool in_heap = highest < heap_end && heap_end - highest < (1 << 24);
  void* const handle = handle_of(highest, 100'000);
  for (std::byte* block : blocks) std::free(block);
  cache_.collect();
  if (in_heap && ::sbrk(0) <= static_cast<void*>(highest)) {
    EXPECT_FALSE(registrar_.holds(handle)) << "the heap has shrunk";
  }
}

TEST_F(MemoryEventsTest, NothingComesAfterTheEnd) {
  std::byte* const memory = map(kPage);
  void* const handle = handle_of(memory, kPage);
  events_.reset();
  ::munmap(memory, kPage);
  cache_.collect();
  EXPECT_TRUE(registrar_.holds(handle));
}

TEST_F(MemoryEventsTest, TwoCachesAreServed) {
  RecordingRegistrar registrar;
  RegistrationCache other(registrar, {});
  auto events = MemoryEvents::start(other.unmapped());
  ASSERT_TRUE(events.ok()) << events.status().text();
  std::byte* const memory = map(kPage);
  Result<Registration*> got = other.acquire({memory, kPage});
  ASSERT_TRUE(got.ok());
  other.release(*got);
  EXPECT_TRUE(loses(memory, kPage, [&] { ::munmap(memory, kPage); }));
  other.collect();
  EXPECT_EQ(registrar.pinned(), 0U);
}

TEST_F(MemoryEventsTest, TheSignalsOfCrashesStayTheProgramsOwn) {
  if (std::getenv("UCX_HANDLE_ERRORS") != nullptr) GTEST_SKIP() << "UCX_HANDLE_ERRORS is set";
  for (size_t i = 0; i < kCrashes.size(); ++i) {
    struct sigaction action {};
    ASSERT_EQ(::sigaction(kCrashes[i], nullptr, &action), 0);
    EXPECT_EQ(action.sa_handler, before_[i].sa_handler) << "signal " << kCrashes[i];
  }
}

TEST(UnmapTrial, WithoutReportsItNamesTheCall) {
  UnmapQueue queue;
  const Status status = try_unmappings(queue);
  EXPECT_EQ(status.code(), IBCOLL_ERR_UNSUPPORTED);
  EXPECT_NE(status.text().find("munmap()"), std::string::npos) << status.text();
}

TEST(HookedFunction, KnowsTheCodeOfTheFile) {
  const HookedFunction untouched("nanosleep");
  EXPECT_FALSE(untouched.patched());
  const HookedFunction missing("there_is_no_such_function");
  EXPECT_TRUE(missing.patched());
  EXPECT_FALSE(missing.unchanged());
}

// ThreadSanitizer has no shadow for code.
__attribute__((no_sanitize("thread"))) void set_byte(volatile std::byte* where, std::byte value) { *where = value; }

TEST(HookedFunction, SeesAPatch) {
  // A function that nothing in this process calls.
  HookedFunction function("inotify_rm_watch");
  function.remember();
  ASSERT_TRUE(function.unchanged());
  ASSERT_FALSE(function.patched());
  auto* const code = const_cast<std::byte*>(static_cast<const std::byte*>(function.code()));
  auto* const page = reinterpret_cast<std::byte*>(reinterpret_cast<uint64_t>(code) / kPage * kPage);
  ASSERT_EQ(::mprotect(page, 2 * kPage, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
  const std::byte before = *code;
  set_byte(code, std::byte{0xe9});
  EXPECT_FALSE(function.unchanged());
  EXPECT_TRUE(function.patched());
  set_byte(code, before);
  ::mprotect(page, 2 * kPage, PROT_READ | PROT_EXEC);
  EXPECT_TRUE(function.unchanged());
}

}  // namespace
}  // namespace ibcoll
