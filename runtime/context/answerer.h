// SPDX-License-Identifier: BSD-3-Clause
// Answers other ranks while the program is outside of ibcoll. A rank that waits asks what its peers have called, and
// one whose collectives are complete may not call again: a peer that still waits for bytes of it would wait for ever,
// where nothing limits how long a collective takes. So a thread looks now and then for what has come. It does nothing
// while a collective of the program is in flight here, so no code of the program runs there.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "runtime/context/context_lock.h"
#include "runtime/context/progress.h"

namespace ibcoll {

class Answerer {
 public:
  // Both outlive it. Without a thread, ranks are answered in the next call.
  Answerer(ContextLock& lock, Progress& progress) noexcept;
  Answerer(const Answerer&) = delete;
  Answerer& operator=(const Answerer&) = delete;
  ~Answerer();

 private:
  void run() noexcept;
  void look() noexcept;

  ContextLock& context_lock_;
  Progress& progress_;
  std::mutex lock_;
  std::condition_variable ended_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace ibcoll
