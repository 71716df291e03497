// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

namespace ibcoll {

// The next push_back() allocates nothing. The room doubles, so that not each of them moves the list.
template <typename T>
void reserve_one(std::vector<T>& list) {
  if (list.size() == list.capacity()) list.reserve(2 * list.size() + 8);
}

}  // namespace ibcoll
