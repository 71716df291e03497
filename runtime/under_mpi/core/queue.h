// SPDX-License-Identifier: BSD-3-Clause
// A queue through its items: to append takes no memory, so it cannot fail.
#pragma once

namespace ibcoll::under_mpi {

// `Item` has a pointer `next`.
template <typename Item>
class Queue {
 public:
  Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  void append(Item* item) noexcept {
    item->next = nullptr;
    *end_ = item;
    end_ = &item->next;
  }
  // NULL: it is empty.
  Item* take_first() noexcept {
    Item* const item = first_;
    if (item == nullptr) return nullptr;
    first_ = item->next;
    if (first_ == nullptr) end_ = &first_;
    return item;
  }
  // Moves those that `which` holds for; returns their number.
  template <typename Which>
  int move(Which which, Queue& to) noexcept {
    int moved = 0;
    Item** at = &first_;
    while (Item* const item = *at) {
      if (!which(*item)) {
        at = &item->next;
        continue;
      }
      *at = item->next;
      to.append(item);
      ++moved;
    }
    end_ = at;
    return moved;
  }

 private:
  Item* first_ = nullptr;
  Item** end_ = &first_;
};

}  // namespace ibcoll::under_mpi
