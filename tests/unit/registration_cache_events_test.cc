// SPDX-License-Identifier: BSD-3-Clause
// Real unmappings and the events of UCX. Skipped, with the reason, only where events cannot exist: no UCX, a sanitizer.
// UCX_MEM_EVENTS=y has them with every version of UCX: no test depends on what UCX before 1.15 does to mremap().
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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
#include "runtime/ucx/workarounds/memory_hooks.h"
#include "runtime/ucx/workarounds/versions.h"
#include "tests/unit/recording_registrar.h"

namespace ibcoll {
namespace {

std::byte* map(size_t bytes, void* where = nullptr) {
  void* const got = ::mmap(where, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | (where == nullptr ? 0 : MAP_FIXED_NOREPLACE), -1, 0);
  return got == MAP_FAILED ? nullptr : static_cast<std::byte*>(got);
}

bool hooked() { return HookedFunction("munmap").patched() || HookedFunction("mremap").patched(); }

bool is_impossible(const Status& status) {
  const auto says = [&](const char* words) { return status.text().find(words) != std::string::npos; };
  return says("not installed") || says("not there when") || says("sanitizer");
}

// UCX as ibcoll loads it, in a process of its own: tests before this one have loaded it. The number says what is wrong.
constexpr int kImpossible = 100;
int load_and_ask() {
  UnmapQueue queue;
  ::unsetenv("UCX_MEM_EVENTS");
  ucx::start_ucm_without_hooks();
  const bool loaded = ::dlopen("libucs.so.0", RTLD_NOW) != nullptr;
  if (loaded && hooked()) return 1;
  const auto events = MemoryEvents::start(queue);
  if (!events.ok() && is_impossible(events.status())) return kImpossible;
  const bool loses_an_argument = ucx::is_needed(ucx::Fault::kMremap);
  if (!loaded || events.ok() == loses_an_argument || hooked() == loses_an_argument) return 2;
  ::setenv("UCX_MEM_EVENTS", "y", 1);
  return MemoryEvents::start(queue).ok() && hooked() ? 0 : 3;
}

TEST(MemoryHooks, AreNotSetBeforeEventsAreAskedFor) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // the program begins anew
  const auto as_it_should_be = [](int status) {
    return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == kImpossible);
  };
  EXPECT_EXIT(::_exit(load_and_ask()), as_it_should_be, "");
}

class MemoryEventsTest : public testing::Test {
 protected:
  static constexpr std::array kCrashes{SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGHUP};

  void SetUp() override {
    for (size_t i = 0; i < kCrashes.size(); ++i) ::sigaction(kCrashes[i], nullptr, &before_[i]);
    ::setenv("UCX_MEM_EVENTS", "y", 0);
    auto events = MemoryEvents::start(cache_.unmapped());
    if (!events.ok() && is_impossible(events.status())) GTEST_SKIP() << events.status().text();
    ASSERT_TRUE(events.ok()) << events.status().text();
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
