// SPDX-License-Identifier: BSD-3-Clause
// A queue of objects that have the link to the next one in themselves: it allocates nothing.
#pragma once

namespace ibcoll {

template <typename T, T* T::*kNext = &T::next>
struct IntrusiveQueue {
  T* head = nullptr;
  T** tail = &head;  // where the next one goes

  IntrusiveQueue() = default;
  IntrusiveQueue(const IntrusiveQueue&) = delete;
  IntrusiveQueue& operator=(const IntrusiveQueue&) = delete;

  bool empty() const noexcept { return head == nullptr; }
  void clear() noexcept {
    head = nullptr;
    tail = &head;
  }
  void push(T* one) noexcept {
    one->*kNext = nullptr;
    *tail = one;
    tail = &(one->*kNext);
  }
  // Takes out what is at `at`: the head, or what another one links to.
  T* take(T** at) noexcept {
    T* const one = *at;
    *at = one->*kNext;
    if (!*at) tail = at;
    return one;
  }
  T* pop() noexcept { return take(&head); }
};

}  // namespace ibcoll
