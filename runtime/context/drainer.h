// SPDX-License-Identifier: BSD-3-Clause
// Sends what is still queued for peers that have not answered yet, after a call of the program has returned. The first
// messages to a peer leave once it has answered, which it does in its next call. A rank whose collectives are complete
// does not wait for that: a thread sends these messages, and ends. It receives nothing from the transport, so no
// collective progresses and no code of the program runs there.
#pragma once

#include <atomic>
#include <thread>

#include "runtime/context/context_lock.h"
#include "runtime/transport/transport.h"

namespace ibcoll {

class Drainer {
 public:
  // Both outlive it; the lock is held around every use of the transport.
  Drainer(ContextLock& lock, Transport& network) : lock_(lock), network_(network) {}
  Drainer(const Drainer&) = delete;
  Drainer& operator=(const Drainer&) = delete;
  ~Drainer();

  // The lock is held. Starts the thread if messages are queued and it does not run. If the system gives no thread, the
  // messages leave in the next call.
  void start_if_needed() noexcept {
    if (network_.unsent() && !running_.load(std::memory_order_relaxed)) [[unlikely]]
      start();
  }

 private:
  void start() noexcept;
  void run() noexcept;

  ContextLock& lock_;
  Transport& network_;
  std::thread thread_;
  std::atomic<bool> running_{false};
  std::atomic<bool> ends_{false};
};

}  // namespace ibcoll
