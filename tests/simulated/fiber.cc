// SPDX-License-Identifier: BSD-3-Clause
#include "tests/simulated/fiber.h"

#include <utility>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace ibcoll {
namespace {

Fiber* running = nullptr;

// AddressSanitizer has to know of each change of the stack. `kept`: nullptr where this stack is left for ever.
void leaves_for([[maybe_unused]] void** kept, [[maybe_unused]] const void* stack, [[maybe_unused]] size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(kept, stack, bytes);
#endif
}
void has_come([[maybe_unused]] void* kept, [[maybe_unused]] const void** from, [[maybe_unused]] size_t* bytes) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(kept, from, bytes);
#endif
}

}  // namespace

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)), stack_(new std::byte[kStackBytes]) {
  ::getcontext(&inside_);
  inside_.uc_stack.ss_sp = stack_.get();
  inside_.uc_stack.ss_size = kStackBytes;
  inside_.uc_link = nullptr;
  ::makecontext(&inside_, &Fiber::enter, 0);
}

Fiber::~Fiber() {
  unwinds_ = true;
  if (!ended_) switch_in();
}

void Fiber::resume() {
  if (!ended_) switch_in();
}

void Fiber::switch_in() {
  Fiber* const outer = std::exchange(running, this);
  void* kept = nullptr;
  leaves_for(&kept, stack_.get(), kStackBytes);
  ::swapcontext(&outside_, &inside_);
  has_come(kept, nullptr, nullptr);
  running = outer;
}

void Fiber::enter() {
  Fiber& self = *running;
  has_come(nullptr, &self.outer_stack_, &self.outer_bytes_);
  try {
    if (!self.unwinds_) self.body_();
  } catch (const Unwind&) {
  }
  self.ended_ = true;
  leaves_for(nullptr, self.outer_stack_, self.outer_bytes_);
  ::setcontext(&self.outside_);
}

void Fiber::pause() {
  Fiber& self = *running;
  void* kept = nullptr;
  leaves_for(&kept, self.outer_stack_, self.outer_bytes_);
  ::swapcontext(&self.inside_, &self.outside_);
  has_come(kept, &self.outer_stack_, &self.outer_bytes_);
  if (self.unwinds_) throw Unwind();
}

}  // namespace ibcoll
