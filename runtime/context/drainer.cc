// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/drainer.h"

#include <chrono>
#include <new>

#include "runtime/machine/own_thread.h"

namespace ibcoll {

Drainer::~Drainer() {
  ends_ = true;
  if (thread_.joinable()) thread_.join();
}

void Drainer::start() noexcept {
  if (thread_.joinable()) thread_.join();
  running_ = true;
  running_ = start_thread(thread_, "first messages leave in the next call", [this] { run(); });
}

// Calls of the program come first: the thread that holds the lock sends the messages as well.
void Drainer::run() noexcept {
  constexpr auto kPause = std::chrono::milliseconds(1);
  for (bool more = true; more && !ends_;) {
    if (lock_.try_lock()) {
      try {
        network_.push();
      } catch (const std::bad_alloc&) {  // nothing is lost: the next pass finds it
      }
      more = network_.unsent();
      if (!more) running_ = false;
      lock_.unlock();
    }
    if (more) std::this_thread::sleep_for(kPause);
  }
}

}  // namespace ibcoll
