// SPDX-License-Identifier: BSD-3-Clause
#include "tools/rdma_in_memory/removal.h"

#include <sys/timerfd.h>

#include <algorithm>
#include <atomic>

#include "tools/rdma_in_memory/file.h"
#include "tools/rdma_in_memory/model.h"
#include "tools/rdma_in_memory/queue_pair.h"

namespace ibcoll::rdma_in_memory {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

std::atomic<bool> removed{false};

// CLOCK_MONOTONIC nanoseconds; 0: never.
uint64_t removal_time() {
  static const uint64_t time =
      model().removed_after <= 0 ? 0 : now_ns() + static_cast<uint64_t>(model().removed_after * kSecond);
  return time;
}

// Of this process, which nobody uses any more.
void end_queue_pairs() {
  Layout& all = File::get().layout();
  const uint32_t count = std::min(all.queue_pairs.load() + 1, kQueuePairs);
  for (uint32_t i = 1; i < count; ++i) {
    SharedQueuePair& one = all.queue_pair[i];
    if (one.process == File::get().process() && one.state.load() != IBV_QPS_RESET) enter_error(one);
  }
}

}  // namespace

int make_event_descriptor() {
  const int descriptor = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(removal_time() / kSecond);
  when.it_value.tv_nsec = static_cast<long>(removal_time() % kSecond);
  ::timerfd_settime(descriptor, TFD_TIMER_ABSTIME, &when, nullptr);
  return descriptor;
}

bool is_removed() { return removed.load(std::memory_order_relaxed); }

void remove_if_due() {
  if (removal_time() == 0 || now_ns() < removal_time() || removed.exchange(true)) return;
  end_queue_pairs();
}

}  // namespace ibcoll::rdma_in_memory
