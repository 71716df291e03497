// SPDX-License-Identifier: BSD-3-Clause
// The coroutine of one collective. Flat: a task awaits Comm and the node window only, never another task, so there is no
// symmetric transfer and the stack stays one resume deep. Its frame comes from the arena of its Comm.
//
// Rules for algorithms (g++ 12 miscompiles what they forbid): arguments by value; no lambda with captures and no braced
// temporary inside a co_await expression; no structured binding of a co_await; noexcept in spirit: nothing throws.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

#include "runtime/base/arena.h"

namespace ibcoll {

class Comm;
Arena& arena_of(Comm& comm) noexcept;

class Task {
 public:
  struct promise_type {
    template <typename... Args>
    static void* operator new(size_t bytes, Comm& comm, const Args&...) noexcept {
      return arena_of(comm).allocate(bytes);
    }
    static void operator delete(void*, size_t) noexcept {}  // goes with the arena
    static Task get_return_object_on_allocation_failure() noexcept { return Task(); }
    Task get_return_object() noexcept { return Task(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };

  Task() noexcept = default;
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      destroy();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  ~Task() { destroy(); }

  // False when the frame could not be allocated.
  explicit operator bool() const noexcept { return handle_ != nullptr; }
  bool done() const noexcept { return handle_.done(); }
  void resume() noexcept { handle_.resume(); }

 private:
  explicit Task(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}
  void destroy() noexcept {
    if (handle_) handle_.destroy();
    handle_ = nullptr;
  }
  std::coroutine_handle<promise_type> handle_;
};

}  // namespace ibcoll
