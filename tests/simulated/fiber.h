// SPDX-License-Identifier: BSD-3-Clause
// A function that can pause in the middle, and be resumed: for code of the library that blocks, on simulated ranks.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace ibcoll {

class Fiber {
 public:
  explicit Fiber(std::function<void()> body);
  // One that has not ended is unwound.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs until it pauses, or ends.
  void resume();
  bool ended() const noexcept { return ended_; }
  // Of the one that runs.
  static void pause();

 private:
  static constexpr size_t kStackBytes = 256 << 10;
  struct Unwind {};
  static void enter();
  void switch_in();

  std::function<void()> body_;
  std::unique_ptr<std::byte[]> stack_;
  ucontext_t inside_{}, outside_{};
  bool ended_ = false;
  bool unwinds_ = false;
  const void* outer_stack_ = nullptr;  // for AddressSanitizer
  size_t outer_bytes_ = 0;
};

}  // namespace ibcoll
