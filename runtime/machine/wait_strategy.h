// SPDX-License-Identifier: BSD-3-Clause
// How a wait uses the core: the number of looks in a row, of yields, and the length of sleeps. Plain values;
// wait_loop.h does the waiting.
#pragma once

#include <cstdint>
#include <string_view>

namespace ibcoll {

class WaitStrategy {
 public:
  // The strategy of a rank that waits for a collective. The rank spins while every rank has a core, yields where ranks
  // share cores, and sleeps once nothing has moved for long. `mode`: auto, spin, yield or sleep (IBCOLL_WAIT).
  // `ranks_per_core`: on the fullest node. `one_cpu`: which all ranks of this node share.
  WaitStrategy(std::string_view mode, double ranks_per_core, bool one_cpu = false);
  // The strategy of waits that are not for a collective: each fruitless look is followed by one yield, or by one sleep.
  static constexpr WaitStrategy yielding() noexcept { return {"yield", Rests{kNoLimit, 0}}; }
  static constexpr WaitStrategy sleeping(uint32_t ns) noexcept { return {"sleep", Rests{0, ns}}; }

  // Looks in a row before the first rest.
  uint32_t spins() const noexcept { return spins_; }
  // Rests that are yields, before the first one that is a sleep.
  uint32_t yields() const noexcept { return yields_; }
  // Sleeping is allowed.
  bool sleeps() const noexcept { return yields_ != kNoLimit; }
  // Sleeps grow from the shortest to the longest one, in steps of the shortest. Nanoseconds.
  uint32_t shortest_sleep_ns() const noexcept { return shortest_sleep_ns_; }
  uint32_t longest_sleep_ns() const noexcept { return longest_sleep_ns_; }
  // All ranks of this node share one processor.
  bool one_cpu() const noexcept { return one_cpu_; }
  // Other ranks need the core even while something moves.
  bool rests_after_news() const noexcept { return rests_after_news_; }
  const char* name() const noexcept { return name_; }

 private:
  static constexpr uint32_t kNoLimit = UINT32_MAX;
  struct Rests {
    uint32_t yields;
    uint32_t sleep_ns;
  };
  constexpr WaitStrategy(const char* name, Rests rests) noexcept
      : name_(name), yields_(rests.yields), shortest_sleep_ns_(rests.sleep_ns), longest_sleep_ns_(rests.sleep_ns) {}

  const char* name_;
  uint32_t spins_ = 1;
  uint32_t yields_;
  uint32_t shortest_sleep_ns_ = 20'000;
  uint32_t longest_sleep_ns_ = 500'000;
  bool one_cpu_ = false;
  bool rests_after_news_ = false;
};

}  // namespace ibcoll
