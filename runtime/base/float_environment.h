// SPDX-License-Identifier: BSD-3-Clause
// Ranks compute apart what they must agree on: costs that decide an algorithm, limits between two ways to move a block.
// A program may have set its processor to round in another direction, to count subnormal numbers as 0 (-ffast-math does
// that to the whole process), or to trap; its neighbours may not have.
#pragma once

#include <cfenv>

namespace ibcoll {

// As a program starts: rounds to nearest, with subnormal numbers, without traps. The thread's own setting comes back at
// the end. What reductions compute is the program's, and follows its setting.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() noexcept {
    std::fegetenv(&programs_);
    std::fesetenv(FE_DFL_ENV);
  }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;
  ~DefaultFloatEnvironment() { std::fesetenv(&programs_); }

 private:
  std::fenv_t programs_{};
};

}  // namespace ibcoll
