// SPDX-License-Identifier: BSD-3-Clause
// The first messages to a peer leave once it has answered, which it does in its next call. A rank whose calls are
// complete is not kept waiting for that: a thread sends what is left, and ends. It takes nothing from the transport, so
// no collective goes on and no code of the program runs there.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

#include "runtime/transport/transport.h"

namespace ibcoll {

class Settler {
 public:
  // Both outlive it; the lock is held around every use of the transport.
  Settler(std::mutex& lock, Transport& network) : lock_(lock), network_(network) {}
  Settler(const Settler&) = delete;
  Settler& operator=(const Settler&) = delete;
  ~Settler();

  // The lock is held. Starts the thread where it is needed and does not run; where the system gives none, the messages
  // leave in the next call.
  void look() noexcept {
    if (network_.unsent() && !running_.load(std::memory_order_relaxed)) [[unlikely]]
      start();
  }

 private:
  void start() noexcept;
  void run() noexcept;

  std::mutex& lock_;
  Transport& network_;
  std::thread thread_;
  std::atomic<bool> running_{false};
  std::atomic<bool> ends_{false};
};

}  // namespace ibcoll
