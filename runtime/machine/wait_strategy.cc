// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/wait_strategy.h"

namespace ibcoll {
namespace {

// A yield costs about a microsecond. Ranks with a core of their own spin for about 50 us before they yield at all.
constexpr uint32_t kSpins = 2000;
constexpr uint32_t kYields = 2000;
constexpr uint32_t kFewYields = 16;

}  // namespace

WaitStrategy::WaitStrategy(std::string_view mode, double ranks_per_core, bool one_cpu)
    : one_cpu_(one_cpu), rests_after_news_(true) {
  const bool shared = ranks_per_core > 1.0;
  if (mode == "spin" || (mode == "auto" && !shared)) {
    name_ = mode == "spin" ? "spin, then yield" : "spin, then yield, then sleep";
    spins_ = kSpins;
    yields_ = mode == "spin" ? kNoLimit : kYields;
  } else if (mode == "sleep") {
    name_ = "sleep";
    yields_ = kFewYields;
  } else {
    name_ = "yield, then sleep";
    yields_ = kYields;
  }
}

}  // namespace ibcoll
