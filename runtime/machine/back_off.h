// SPDX-License-Identifier: BSD-3-Clause
// How a rank waits: spin while every rank has a core, yield where they share cores, sleep once nothing has moved for
// long. The sleep is bounded, so that a rank sees new work within half a millisecond whatever happens. Where ranks
// share cores and one knows whom of its node it waits for, it sleeps sooner, until that one wakes it (doorbell.h);
// other news it then sees after four milliseconds. Who waits for what a leader brings from other nodes, and has one
// processor with it, sleeps at once.
#pragma once

#include <cstdint>
#include <string_view>

namespace ibcoll {

class WaitStrategy {
 public:
  // `mode`: auto, spin, yield or sleep (IBCOLL_WAIT). `ranks_per_core`: on the fullest node. `one_cpu`:
  // which all ranks of this node share.
  WaitStrategy(std::string_view mode, double ranks_per_core, bool one_cpu = false);

  // Polls in a row before the first pause.
  uint32_t spins() const noexcept { return spins_; }
  // Sleeping is allowed.
  bool sleeps() const noexcept { return yields_ != UINT32_MAX; }
  const char* name() const noexcept { return name_; }

  // One wait: pause() after each run of fruitless polls, from fresh() on.
  class Pause {
   public:
    explicit Pause(const WaitStrategy& strategy) noexcept : strategy_(strategy) {}
    void fresh() noexcept {
      count_ = 0;
      tired_at_ = 0;
    }
    // True when the rank has waited for long: time to look for dead peers and deadlines.
    bool pause() noexcept;
    // True when the rank had better sleep until it is woken, where somebody would wake it: it has yielded for so long,
    // or waits `for_a_leader` that only it keeps from the core.
    bool tired(bool for_a_leader) noexcept;
    // That sleep ends by itself after so long. Not sooner: most kernels then have no timer to set, as their tick comes
    // before.
    static constexpr uint32_t kLongestBellNs = 4'000'000;
    // Instead of pause(): the rank has slept so, and was woken or not. Returns what pause() does.
    bool slept(bool woken) noexcept;

   private:
    const WaitStrategy& strategy_;
    uint32_t count_ = 0;
    uint32_t sleeps_ = 0;    // of this wait, however they ended
    uint64_t tired_at_ = 0;  // 0: not known yet
  };

 private:
  const char* name_;
  uint32_t spins_;
  uint32_t yields_;
  bool one_cpu_;
};

// Tells the core that this is a spin loop.
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Asks for a cache line that will be written soon, so that the store need not wait for other cores to give it up.
inline void prefetch_to_write(const void* address) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));  // __builtin_prefetch asks to read only
#else
  __builtin_prefetch(address, 1);
#endif
}

}  // namespace ibcoll
