// SPDX-License-Identifier: BSD-3-Clause
// The call sites of a trace, numbered from 0 in the order in which they are first met.
#pragma once

#include <cstddef>
#include <map>
#include <string>

namespace ibcoll {

class TraceSites {
 public:
  size_t number(const void* site);
  size_t size() const noexcept { return numbers_.size(); }
  // One line of each, in the order of their numbers.
  const std::string& lines() const noexcept { return lines_; }

 private:
  std::map<const void*, size_t> numbers_;
  std::string lines_;
};

}  // namespace ibcoll
