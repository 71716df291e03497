// SPDX-License-Identifier: BSD-3-Clause
// Answers of the PMIx server that come on its thread, awaited with a deadline. PMIx cannot cancel an operation, so the
// state outlives a wait that gave up: every operation in flight holds a share of it.
#pragma once

#include <pmix.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace ibcoll {

// As a condition variable takes it; infinity becomes three years.
inline std::chrono::milliseconds wait_time(double seconds) noexcept {
  return std::chrono::milliseconds(static_cast<int64_t>(std::clamp(seconds, 0.0, 1e8) * 1e3));
}

class Pending {
 public:
  // One operation in flight; passed to PMIx as its call back's data, which then owns it.
  struct Slot {
    std::shared_ptr<Pending> pending;
    size_t index;
  };

  // `operations` answers, each bringing `bytes` bytes. nullptr: no memory.
  static std::shared_ptr<Pending> create(size_t operations, size_t bytes) noexcept;
  std::unique_ptr<Slot> slot(size_t index) { return std::make_unique<Slot>(Slot{self_.lock(), index}); }

  // PMIx's call backs; `data` is a Slot.
  static void fence_done(pmix_status_t reason, void* data) noexcept;
  static void value_arrived(pmix_status_t reason, pmix_value_t* value, void* data) noexcept;

  // False: some operation has not answered in time.
  bool wait(double seconds);
  // After wait(): the first operation without a good answer, -1 if there is none, and why.
  int first_failed();
  pmix_status_t reason();
  // After wait() without failures: the bytes of all operations in order; no call back writes to them any more.
  std::span<const std::byte> data() const { return data_; }

  Pending(size_t operations, size_t bytes)
      : bytes_(bytes), outstanding_(operations), data_(operations * bytes), good_(operations, false) {}

 private:
  void answer(size_t index, pmix_status_t reason, std::span<const std::byte> bytes) noexcept;

  const size_t bytes_;
  std::weak_ptr<Pending> self_;
  std::mutex mutex_;
  std::condition_variable all_answered_;
  size_t outstanding_;
  pmix_status_t reason_ = PMIX_SUCCESS;
  std::vector<std::byte> data_;
  std::vector<bool> good_;
};

}  // namespace ibcoll
