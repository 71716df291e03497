// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/fork_watch.h"

#include <pthread.h>

#include <atomic>

namespace ibcoll {
namespace {

std::atomic<int> contexts{0};

}  // namespace

bool ForkWatch::in_child_ = false;

ForkWatch::ForkWatch() {
  // Once for the process. If it fails for lack of memory, in_child() stays false in children.
  [[maybe_unused]] static const int watches = ::pthread_atfork(nullptr, nullptr, [] {
    if (contexts.load(std::memory_order_relaxed) > 0) in_child_ = true;
  });
  contexts.fetch_add(1, std::memory_order_relaxed);
}

ForkWatch::~ForkWatch() { contexts.fetch_sub(1, std::memory_order_relaxed); }

}  // namespace ibcoll
