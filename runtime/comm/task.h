// SPDX-License-Identifier: BSD-3-Clause
// The coroutine of a collective, or of a part of one: a task may await another task, as a function calls another.
// Frames come from the arena of the collective. There is no symmetric transfer (it needs tail calls, which g++ leaves
// out without optimisation): the engine resumes the innermost task, and when that ends, its caller, so the machine's
// stack stays one resume deep.
// Rules, because g++ 12 miscompiles what they forbid (tests/layering checks them): A task takes values, pointers and
// Comm&. A full expression with a co_await has no lambda with captures, no braced temporary and no conditional (both
// sides are evaluated): a statement before it names such an object. There is no structured binding of a co_await and no
// co_await in a catch block. Nothing in a task throws.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

#include "runtime/base/arena.h"

namespace ibcoll {

class Comm;
class CallStack;
inline Arena& arena_of(Comm& comm) noexcept;  // both: runtime/comm/comm.h
inline CallStack& stack_of(Comm& comm) noexcept;

class Task {
 public:
  struct promise_type {
    CallStack* stack;
    promise_type* caller = nullptr;  // the task that awaits this one

    template <typename... Args>
    explicit promise_type(Comm& comm, const Args&...) noexcept : stack(&stack_of(comm)) {}
    template <typename... Args>
    static void* operator new(size_t bytes, Comm& comm, const Args&...) noexcept {
      return arena_of(comm).allocate(bytes);
    }
    static void operator delete(void*, size_t) noexcept {}  // goes with the arena
    static Task get_return_object_on_allocation_failure() noexcept { return Task(); }
    Task get_return_object() noexcept { return Task(handle()); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
    std::coroutine_handle<promise_type> handle() noexcept {
      return std::coroutine_handle<promise_type>::from_promise(*this);
    }
  };

  // The awaiter of `co_await other_task(...)`.
  struct Call {
    promise_type* callee;
    bool await_ready() const noexcept { return false; }
    inline void await_suspend(std::coroutine_handle<promise_type> caller) const noexcept;
    void await_resume() const noexcept {}
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
  Call operator co_await() const noexcept { return {handle_ ? &handle_.promise() : nullptr}; }

 private:
  friend class CallStack;
  explicit Task(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}
  void destroy() noexcept {
    if (handle_) handle_.destroy();
    handle_ = nullptr;
  }
  std::coroutine_handle<promise_type> handle_;
};

// The tasks of one collective that await each other.
class CallStack {
 public:
  // `task` is resumed first; a collective that has it must outlive it.
  void enter(const Task& task) noexcept {
    top_ = &task.handle_.promise();
    short_of_memory_ = false;
  }
  // Until the innermost task waits or `failed()` says that the collective has failed; true: the first task has ended.
  template <typename Failed>
  bool resume(Failed failed) noexcept {
    for (;;) {
      Task::promise_type* const running = top_;
      running->handle().resume();
      if (failed() || short_of_memory_) return false;
      if (top_ != running) continue;  // it awaits a task, which begins
      if (!running->handle().done()) return false;
      if (!running->caller) return true;
      top_ = running->caller;
    }
  }
  // A task could not be made: nothing continues.
  bool short_of_memory() const noexcept { return short_of_memory_; }

 private:
  friend struct Task::Call;
  Task::promise_type* top_ = nullptr;
  bool short_of_memory_ = false;
};

inline void Task::Call::await_suspend(std::coroutine_handle<promise_type> caller) const noexcept {
  CallStack& stack = *caller.promise().stack;
  if (!callee) {
    stack.short_of_memory_ = true;
    return;
  }
  callee->caller = &caller.promise();
  stack.top_ = callee;
}

}  // namespace ibcoll
