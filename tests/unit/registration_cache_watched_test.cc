// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/registration_cache/watched_cache.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "runtime/base/json.h"
#include "runtime/machine/user_memory.h"
#include "runtime/registration_cache/memlock.h"
#include "tests/unit/recording_registrar.h"

namespace ibcoll {
namespace {

// With every version of UCX.
[[maybe_unused]] const int has_memory_events = ::setenv("UCX_MEM_EVENTS", "y", 0);

void* use(WatchedCache& cache, void* memory, size_t bytes) {
  Result<Registration*> got = cache.acquire({static_cast<std::byte*>(memory), bytes});
  EXPECT_TRUE(got.ok()) << got.status().text();
  void* const handle = (*got)->handle();
  cache.release(*got);
  return handle;
}

void* allocate(size_t bytes) {
  Result<void*> got = allocate_memory(bytes);
  EXPECT_TRUE(got.ok()) << got.status().text();
  return *got;
}

TEST(WatchedCache, SettingsComeFromTheConfiguration) {
  const char* const environment[] = {"IBCOLL_REGISTRATION_CACHE=off", "IBCOLL_REGISTRATION_BYTES=3M",
                                     "IBCOLL_REGISTRATION_REGIONS=17", nullptr};
  Result<Config> config = Config::load_from(environment);
  ASSERT_TRUE(config.ok()) << config.status().text();
  const WatchedCache::Settings settings = WatchedCache::Settings::from(*config);
  EXPECT_FALSE(settings.enabled);
  EXPECT_EQ(settings.limit_bytes, 3U << 20);
  EXPECT_EQ(settings.limit_regions, 17U);
  EXPECT_TRUE(WatchedCache::Settings::from(Config()).enabled);
}

TEST(WatchedCache, TheLimitIsTheSettingOrHalfOfMemlock) {
  RecordingRegistrar registrar;
  EXPECT_EQ(WatchedCache(registrar, {true, 4096, 100}).describe().text("limit_bytes"), "4096");
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &limit), 0);
  const Json by_itself = WatchedCache(registrar, {}).describe();
  if (by_itself.contains("limit_bytes")) {
    EXPECT_EQ(by_itself.text("limit_bytes"), std::to_string(limit.rlim_cur / 2));
  } else {
    EXPECT_TRUE(limit.rlim_cur == RLIM_INFINITY || ::geteuid() == 0) << limit.rlim_cur;
  }
}

// Root of a container that an unprivileged user has started may not pin beyond the limit.
TEST(Memlock, BindsWhoIsRootOfAUserNamespaceOnly) {
  constexpr rlim_t kLimit = 1 << 20;
  enum Answer { kBinds, kDoesNot, kNoNamespaces };
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{kLimit, kLimit};
    if (::unshare(CLONE_NEWUSER) != 0 || ::setrlimit(RLIMIT_MEMLOCK, &limit) != 0) ::_exit(kNoNamespaces);
    ::_exit(memlock_limit() == kLimit ? kBinds : kDoesNot);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoNamespaces) GTEST_SKIP() << "no user namespaces here";
  EXPECT_EQ(WEXITSTATUS(status), kBinds);
}

TEST(WatchedCache, OffPinsForEachUse) {
  RecordingRegistrar registrar;
  WatchedCache cache(registrar, {false, 0, 100});
  void* const memory = allocate(kPage);
  EXPECT_FALSE(cache.keeps({static_cast<std::byte*>(memory), kPage}));
  EXPECT_NE(use(cache, memory, kPage), use(cache, memory, kPage));
  EXPECT_EQ(registrar.pinned(), 0U);
  EXPECT_EQ(cache.describe().text("keeps"), "nothing");
  EXPECT_EQ(cache.describe().text("why_no_more"), "IBCOLL_REGISTRATION_CACHE is off");
  EXPECT_TRUE(free_memory(memory).ok());
}

TEST(WatchedCache, AllocatedMemoryIsKeptUntilItIsFreedWithAndWithoutEvents) {
  RecordingRegistrar registrar;
  WatchedCache cache(registrar, {});
  void* const memory = allocate(4 * kPage);
  EXPECT_TRUE(cache.keeps({static_cast<std::byte*>(memory), 4 * kPage}));
  void* const handle = use(cache, memory, 4 * kPage);
  EXPECT_EQ(use(cache, static_cast<std::byte*>(memory) + kPage, 10), handle);
  EXPECT_TRUE(free_memory(memory).ok());
  cache.collect();
  EXPECT_FALSE(registrar.holds(handle));
  EXPECT_EQ(cache.describe().text("hit_rate"), "0.5");
}

// With events all memory is kept; without, whatever the reason, only what this library allocates.
TEST(WatchedCache, OtherMemoryIsKeptWithEventsOnly) {
  RecordingRegistrar registrar;
  WatchedCache cache(registrar, {});
  void* const memory = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* const first = use(cache, memory, kPage);
  if (cache.scope() == WatchedCache::Scope::kAll) {
    EXPECT_EQ(use(cache, memory, kPage), first);
    EXPECT_EQ(cache.reason(), "");
  } else {
    EXPECT_NE(use(cache, memory, kPage), first);
    EXPECT_NE(cache.reason(), "");
  }
  ::munmap(memory, kPage);
  cache.collect();
  EXPECT_EQ(registrar.pinned(), 0U);
}

// dlclose() unmaps it unseen. The program's own goes with the program.
TEST(WatchedCache, StaticMemoryOfALibraryIsNotKept) {
  RecordingRegistrar registrar;
  WatchedCache cache(registrar, {});
  if (cache.scope() != WatchedCache::Scope::kAll) GTEST_SKIP() << cache.reason();
  static std::byte own[kPage];
  EXPECT_TRUE(cache.keeps(own));
  const auto* const of_the_c_library = reinterpret_cast<const std::byte*>(stdout);
  EXPECT_FALSE(cache.keeps({of_the_c_library, 1}));
}

TEST(WatchedCache, WhatIsKeptGivesWayOnce) {
  RecordingRegistrar registrar;
  WatchedCache cache(registrar, {});
  int calls = 0;
  const auto lacks_memory_while_pinned = [&] {
    ++calls;
    return registrar.pinned() > 0 ? error(IBCOLL_ERR_NO_MEMORY, "full") : Status();
  };
  void* const kept = allocate(kPage);
  void* const used = allocate(kPage);
  use(cache, kept, kPage);
  EXPECT_TRUE(cache.with_room(lacks_memory_while_pinned).ok());
  EXPECT_EQ(calls, 2);
  Result<Registration*> held = cache.acquire({static_cast<std::byte*>(used), kPage});
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(cache.with_room(lacks_memory_while_pinned).code(), IBCOLL_ERR_NO_MEMORY) << "what is in use stays";
  EXPECT_EQ(calls, 4);
  cache.release(*held);
  const auto fails = [&] { return ++calls, error(IBCOLL_ERR_SYSTEM, "no"); };
  EXPECT_EQ(cache.with_room(fails).code(), IBCOLL_ERR_SYSTEM);
  EXPECT_EQ(calls, 5);
  EXPECT_EQ(registrar.pinned(), 1U) << "other errors cost nothing";
  EXPECT_TRUE(free_memory(kept).ok());
  EXPECT_TRUE(free_memory(used).ok());
}

// Changes a byte of munmap() after the jump that UCX has put there: nothing runs it.
void change_munmap() {
  const HookedFunction munmap("munmap");
  auto* const byte = const_cast<std::byte*>(static_cast<const std::byte*>(munmap.code())) + 15;
  auto* const page = reinterpret_cast<std::byte*>(reinterpret_cast<uint64_t>(byte) / kPage * kPage);
  ASSERT_EQ(::mprotect(page, kPage, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
  *byte ^= std::byte{0xff};
  ASSERT_EQ(::mprotect(page, kPage, PROT_READ | PROT_EXEC), 0);
}

TEST(WatchedCache, AHookThatIsSetLaterEndsTheTrust) {
  RecordingRegistrar registrar;
  WatchedCache cache(registrar, {});
  if (cache.scope() != WatchedCache::Scope::kAll) GTEST_SKIP() << cache.reason();
  if (const char* mode = std::getenv("UCX_MEM_MMAP_HOOK_MODE"); mode != nullptr) GTEST_SKIP() << "hooks: " << mode;
  alignas(kPage) static std::byte memory[kPage];
  void* const own = allocate(kPage);
  void* const before = use(cache, memory, kPage);
  ASSERT_NO_FATAL_FAILURE(change_munmap());
  EXPECT_NE(use(cache, memory, kPage), before);
  ASSERT_NO_FATAL_FAILURE(change_munmap());  // as it was; the trust does not come back
  EXPECT_EQ(registrar.pinned(), 0U) << "nothing of before counts, and this memory is not kept any more";
  EXPECT_EQ(cache.scope(), WatchedCache::Scope::kAllocated);
  EXPECT_NE(cache.reason().find("hooked munmap()"), std::string::npos) << cache.reason();
  EXPECT_EQ(use(cache, own, kPage), use(cache, own, kPage));
  EXPECT_TRUE(free_memory(own).ok());
}

TEST(Memory, IsAllocatedMeansOneWholeBlock) {
  auto* const memory = static_cast<std::byte*>(allocate(2 * kPage));
  EXPECT_TRUE(is_allocated({memory, 2 * kPage}));
  EXPECT_TRUE(is_allocated({memory + 5, 10}));
  EXPECT_TRUE(is_allocated({memory + 2 * kPage - 1, 1}));
  EXPECT_FALSE(is_allocated({memory + 1, 2 * kPage}));
  EXPECT_FALSE(is_allocated({memory - 1, 2}));
  EXPECT_FALSE(is_allocated({memory + 3 * kPage, 1}));
  EXPECT_TRUE(free_memory(memory).ok());
  EXPECT_FALSE(is_allocated({memory, 1}));
}

TEST(Memory, FreesAreReportedBeforeTheyHappen) {
  struct Seen {
    const void* address = nullptr;
    size_t bytes = 0;
  } seen;
  const FreeWatcher watcher = [](void* context, const void* address, size_t bytes) {
    EXPECT_EQ(*static_cast<const int*>(address), 7) << "still there";
    *static_cast<Seen*>(context) = {address, bytes};
  };
  watch_frees(watcher, &seen);
  auto* const memory = static_cast<int*>(allocate(kPage));
  *memory = 7;
  EXPECT_TRUE(free_memory(memory).ok());
  EXPECT_EQ(seen.address, memory);
  EXPECT_EQ(seen.bytes, kPage);
  unwatch_frees(watcher, &seen);
  seen = {};
  EXPECT_TRUE(free_memory(allocate(kPage)).ok());
  EXPECT_EQ(seen.address, nullptr);
}

}  // namespace
}  // namespace ibcoll
