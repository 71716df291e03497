// SPDX-License-Identifier: BSD-3-Clause
// The search for leaks in a process with threads that have thread-local variables of a loaded module.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sanitizer/lsan_interface.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <thread>

namespace ibcoll {
namespace {

constexpr int kMostThreads = 200;
constexpr int kNoSuchBlock = 77;

// A thread stays, with the one pointer to some memory in its block. Where the block begins.
uintptr_t start_thread(void** (*block)()) {
  std::atomic<uintptr_t> begins{0};
  std::thread([&begins, block] {
    *block() = std::malloc(100);
    begins = reinterpret_cast<uintptr_t>(block());
    for (;;) ::pause();
  }).detach();
  while (begins == 0) std::this_thread::yield();
  return begins;
}

__attribute__((noinline)) void lose(size_t bytes) {
  [[maybe_unused]] void* volatile memory = std::malloc(bytes);
  memory = nullptr;
}

// Ends with 1 when leaks are found.
void look_for_leaks(size_t lost) {
  void* module = ::dlopen(IBCOLL_THREAD_LOCAL_MODULE, RTLD_NOW);
  if (module == nullptr) ::_exit(kNoSuchBlock);
  auto* block = reinterpret_cast<void** (*)()>(::dlsym(module, "thread_local_block"));
  bool after_a_page = false;
  for (int threads = 0; threads < kMostThreads && !after_a_page; ++threads) {
    after_a_page = start_thread(block) % 4096 == 16;
  }
  if (!after_a_page) ::_exit(kNoSuchBlock);
  if (lost > 0) lose(lost);
  ::_exit(__lsan_do_recoverable_leak_check());
}

// In a process that has run no other test: where the blocks begin depends on what was allocated before.
class SanitizerDefaults : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(SanitizerDefaults, WhatAThreadOfAModuleHoldsIsNoLeakAndNoCrash) {
  EXPECT_EXIT(look_for_leaks(0), testing::ExitedWithCode(0), "");
}

TEST_F(SanitizerDefaults, ALeakIsFoundBesideIt) {
  EXPECT_EXIT(look_for_leaks(12345), testing::ExitedWithCode(1), "12345 byte");
}

}  // namespace
}  // namespace ibcoll
