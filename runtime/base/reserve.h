// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

namespace ibcoll {

// The next `count` calls of push_back() allocate nothing. The room doubles, so that not each of them moves the list.
template <typename T>
void reserve_more(std::vector<T>& list, size_t count) {
  if (list.size() + count > list.capacity()) list.reserve(2 * list.size() + 7 + count);
}
template <typename T>
void reserve_one(std::vector<T>& list) {
  reserve_more(list, 1);
}

}  // namespace ibcoll
