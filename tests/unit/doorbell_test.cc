// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/doorbell.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <new>
#include <thread>
#include <vector>

namespace ibcoll {
namespace {

constexpr uint32_t kLongestNs = 500'000;

// The bells of a node, in memory that children share.
class Node {
 public:
  explicit Node(int ranks) : bytes_(static_cast<size_t>(ranks) * sizeof(Bell)) {
    void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    for (int i = 0; i < ranks; ++i) bells_.push_back(new (static_cast<Bell*>(memory) + i) Bell());
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node() { ::munmap(bells_.front(), bytes_); }
  Doorbell of(int rank) const { return Doorbell(bells_, rank); }
  Bell& bell(int rank) const { return *bells_[static_cast<size_t>(rank)]; }

 private:
  size_t bytes_;
  std::vector<Bell*> bells_;
};

TEST(Doorbell, NobodyIsWokenWhoDoesNotSleep) {
  const Node node(3);
  Doorbell publisher = node.of(0), waiter = node.of(1);
  publisher.ring();
  waiter.subscribe(2);  // it sleeps for another
  publisher.ring();
  EXPECT_EQ(node.bell(0).wakeups.load(), 0u);
  waiter.subscribe(0);
  publisher.ring();
  EXPECT_EQ(node.bell(0).wakeups.load(), 1u);
  publisher.ring();  // a subscription is for one time
  EXPECT_EQ(node.bell(0).wakeups.load(), 1u);
  EXPECT_EQ(publisher.times_others_woken(), 0u) << "a subscriber that does not sleep is not counted";
}

TEST(Doorbell, WhatRingsBeforeTheSleepEndsIt) {
  const Node node(2);
  Doorbell publisher = node.of(0), waiter = node.of(1);
  const uint32_t wakeups = waiter.subscribe(0);
  publisher.ring();
  EXPECT_TRUE(waiter.sleep(0, wakeups, kLongestNs));
  EXPECT_EQ(waiter.times_woken(), 1u);
}

TEST(Doorbell, ASleepThatNobodyEndsIsShort) {
  const Node node(2);
  Doorbell waiter = node.of(1);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(waiter.sleep(0, waiter.subscribe(0), kLongestNs));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::microseconds(400));
  EXPECT_EQ(waiter.sleeps(), 1u);
  EXPECT_EQ(waiter.times_woken(), 0u);
}

// By one call, and no other rank is.
TEST(Doorbell, AllWhoSleepForARankAreWokenTogether) {
  constexpr int kSleepers = 3;
  constexpr uint32_t kForLongNs = 4'000'000'000;
  const Node node(kSleepers + 2);
  std::vector<std::thread> sleepers;
  std::atomic<int> subscribed{0}, woken{0};
  for (int rank = 1; rank <= kSleepers; ++rank)
    sleepers.emplace_back([&, rank] {
      Doorbell waiter = node.of(rank);
      const uint32_t wakeups = waiter.subscribe(0);
      ++subscribed;
      woken += waiter.sleep(0, wakeups, kForLongNs);
    });
  while (subscribed < kSleepers) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // now they sleep; a ring before that would count as well
  node.of(0).ring();
  for (std::thread& sleeper : sleepers) sleeper.join();
  EXPECT_EQ(woken, kSleepers);
  EXPECT_EQ(node.bell(0).wakeups.load(), 1u);
  EXPECT_EQ(node.bell(kSleepers + 1).wakeups.load(), 0u);
}

// For long: the publisher may have been interrupted before it looked.
bool is_subscribed(const Bell& bell) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (bell.subscribed.load() != 0)
    if (std::chrono::steady_clock::now() > end) return true;
  return false;
}

// Each round both subscribe at the other alternately: a lost wake-up is a sleep to its end.
TEST(Doorbell, NoWakeUpIsLost) {
  constexpr int kRounds = 2000;
  const Node node(2);
  std::atomic<int> published[2] = {}, rung[2] = {};
  int slept_out[2] = {};
  const auto run = [&](int rank) {
    Doorbell doorbell = node.of(rank);
    const std::atomic<int>& awaited = published[1 - rank];
    for (int round = 1; round <= kRounds; ++round) {
      published[rank].store(round, std::memory_order_release);
      doorbell.ring();
      rung[rank].store(round, std::memory_order_release);
      while (awaited.load(std::memory_order_acquire) < round) {
        const uint32_t wakeups = doorbell.subscribe(1 - rank);
        // Published, and rung for in vain or not for long, and yet it slept to the end: that must not be. Once is
        // enough.
        if (awaited.load(std::memory_order_acquire) < round && !doorbell.sleep(1 - rank, wakeups, kLongestNs) &&
            awaited.load(std::memory_order_acquire) >= round)
          slept_out[rank] = slept_out[rank] > 0 || is_subscribed(node.bell(1 - rank)) ||
                            (rung[1 - rank].load(std::memory_order_acquire) >= round &&
                             node.bell(1 - rank).wakeups.load() == wakeups);
      }
    }
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  EXPECT_EQ(slept_out[0] + slept_out[1], 0);
}

TEST(Doorbell, RingsInAnotherProcess) {
  const Node node(2);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Doorbell waiter = node.of(1);
    for (int i = 0; i < 20000 && waiter.times_woken() == 0; ++i) {
      waiter.sleep(0, waiter.subscribe(0), kLongestNs);
    }
    ::_exit(waiter.times_woken() > 0 ? 0 : 1);
  }
  Doorbell publisher = node.of(0);
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (node.bell(0).subscribed.load() != 0) {
      ::usleep(100);  // now it sleeps
      publisher.ring();
    }
  }
  EXPECT_EQ(status, 0);
}

// A rank that died in its sleep is rung for once more, and that is all.
TEST(Doorbell, TheDeadAreForgotten) {
  const Node node(2);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Doorbell waiter = node.of(1);
    waiter.subscribe(0);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  Doorbell publisher = node.of(0);
  publisher.ring();
  publisher.ring();
  EXPECT_EQ(node.bell(0).wakeups.load(), 1u);
  EXPECT_EQ(publisher.times_others_woken(), 0u);
}

}  // namespace
}  // namespace ibcoll
