// SPDX-License-Identifier: BSD-3-Clause
// The state that the forked ranks of a job and their test share: flags by which one makes the moment that another one
// waits for.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <new>

#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {

// Made before the ranks are forked. T has atomics.
template <typename T>
class SharedState {
 public:
  SharedState() : at_(::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (at_ == MAP_FAILED) throw std::bad_alloc();
    clear();
  }
  SharedState(const SharedState&) = delete;
  SharedState& operator=(const SharedState&) = delete;
  ~SharedState() { ::munmap(at_, sizeof(T)); }

  void clear() { new (at_) T(); }
  T& operator*() const { return *static_cast<T*>(at_); }
  T* operator->() const { return static_cast<T*>(at_); }

 private:
  void* at_;
};

constexpr double kMomentSeconds = 60;  // no machine needs as long for what a test waits for

// Whether the condition came true. `meanwhile`: as ibcoll_progress, where others need this rank for it.
template <typename Condition, typename Meanwhile>
bool await(Condition condition, Meanwhile meanwhile) {
  for (const double end = seconds_now() + kMomentSeconds; !condition(); meanwhile())
    if (seconds_now() > end) return false;
  return true;
}
template <typename Condition>
bool await(Condition condition) {
  return await(condition, [] { ::usleep(500); });
}

}  // namespace ibcoll::multiprocess
