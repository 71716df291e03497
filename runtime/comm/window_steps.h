// SPDX-License-Identifier: BSD-3-Clause
// The steps of a node window: which lines and areas a step uses, when it can begin, and which ranks have published it.
// One writer of each flag; release on publish, acquire on read.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "runtime/comm/window_memory.h"
#include "runtime/machine/core_hints.h"
#include "runtime/machine/simulation.h"

namespace ibcoll {

class WindowSteps {
 public:
  static constexpr uint64_t kWhole = (1 << 20) - 1;  // more parts than a step has

  // `crowded`: ranks outnumber cores.
  WindowSteps(WindowMemory memory, int rank, bool crowded) noexcept
      : memory_(std::move(memory)), rank_(rank), crowded_(crowded) {}

  WindowMemory& memory() noexcept { return memory_; }
  const WindowMemory& memory() const noexcept { return memory_; }
  int rank() const noexcept { return rank_; }
  bool crowded() const noexcept { return crowded_; }
  // The current step.
  uint64_t step() const noexcept { return step_; }

  // ---- where data are

  // The memory where rank `local` puts (or put) `bytes` bytes in the current step, or `steps_back` steps before.
  std::byte* area(int local, uint64_t bytes, int steps_back = 0) const noexcept {
    const uint64_t step = step_ - static_cast<uint64_t>(steps_back);
    if (!in_line(bytes)) return memory_.area(local, step);
    return (steps_back == 0 ? lines_[local] : memory_.line(local, step)).data;
  }
  // The same in a step in which each rank says what it writes itself.
  std::byte* own_area(int local, uint64_t bytes) const noexcept {
    return in_short_area(bytes) ? memory_.short_area(local, step_) : area(local, bytes);
  }
  // The same in a step in which `writer` alone writes.
  std::byte* sole_area(int writer, uint64_t bytes) const noexcept {
    return area(in_line(bytes) ? writer : static_cast<int>(step_ / kBanks % lenders(bytes)), bytes);
  }

  // ---- beginning a step

  // Begins the next step, in which no rank publishes more than `bytes` bytes. False: it cannot begin yet.
  bool try_next(uint64_t bytes) noexcept {
    if (!memory_.ready_for(bytes) || !begin(in_line(bytes) ? kLines : kBanks)) return false;
    if (!in_line(bytes)) shared_step_ = step_;
    return true;
  }
  // The same for a step in which one rank alone writes: such steps in a row use the areas of all ranks in turn.
  bool try_next_sole(uint64_t bytes) noexcept {
    if (!memory_.ready_for(bytes)) return false;
    if (in_line(bytes)) return begin(kLines);
    const uint64_t lenders_now = lenders(bytes);
    if (lenders_now != lenders_) shared_step_ = step_;
    lenders_ = lenders_now;
    const uint64_t since = step_ + 1 - shared_step_;
    return begin(std::clamp<uint64_t>(since, kBanks, std::min<uint64_t>(kLines, kBanks * lenders_)));
  }
  // The same for a step in which each rank says what it writes itself, to its own areas or to others': a rank that
  // writes to lines or short areas only runs as far ahead as these allow, whatever the others write.
  bool try_next_own(uint64_t bytes) noexcept {
    // A rank that writes long blocks to others may write short ones, too.
    if (!memory_.ready_for(in_short_area(bytes) ? 0 : bytes)) return false;
    if (!in_line(bytes) && !memory_.ready_for_short_areas()) return false;
    const int areas = in_short_area(bytes) ? WindowMemory::kShortAreas : kBanks;
    if (!begin(static_cast<uint64_t>(in_line(bytes) ? kLines : areas))) return false;
    shared_step_ = step_;  // others may write to areas in it
    return true;
  }
  // A local rank that has not published what the last attempt to begin a step needed.
  int lagging() const noexcept { return lagging_; }
  // True when `local` has not published what that step needs, so that no rank can begin it.
  bool holds_back(int local) const noexcept {
    return needed_ > 0 &&
           memory_.line(local, needed_).published.load(std::memory_order_acquire) < flag(needed_, kWhole);
  }

  // ---- publishing

  // All of the step, or all that is left of it. `signature`: the digest of the call.
  void publish(uint32_t signature) noexcept {
    sign(signature);
    store_flag(flag(step_, kWhole));
    parts_ = 0;
    prefetch_to_write(&memory_.line(rank_, step_ + 2));
  }
  // One more part of the step; publish() ends it.
  void publish_part(uint32_t signature) noexcept {
    sign(signature);
    store_flag(flag(step_, ++parts_));
  }
  // True when the rank has published this number of parts of the step, or kWhole: all of it.
  bool published(int local, uint64_t parts) const noexcept {
    return lines_[local].published.load(std::memory_order_acquire) >= flag(step_, parts);
  }

  // ---- checks

  // The digest of all calls up to this step, so that a call in which no rank looked at the odd rank is noticed in the
  // next one. Meaningful once the rank has published the step, as this one has.
  uint32_t digest(int local) const noexcept { return lines_[local].digest; }
  // False: another process has written to the line in which this rank published last.
  bool own_line_intact() const noexcept {
    if (last_flag_ == 0) return true;
    const WindowMemory::Line& own = memory_.line(rank_, last_flag_ / (kWhole + 1));
    return own.published.load(std::memory_order_relaxed) == last_flag_ && own.digest == digest_;
  }
  // False: no rank can have published what the line of the current step contains.
  bool plausible(int local) const noexcept {
    return lines_[local].published.load(std::memory_order_relaxed) / (kWhole + 1) <= step_ + kLines;
  }

 private:
  static constexpr int kBanks = WindowMemory::kBanks;
  static constexpr int kLines = WindowMemory::kLines;
  // Polls of the last needed step: where a rank spins, twice the time in which another reads half of the lines.
  static constexpr int kSpinPolls = 256;
  // The lead in bytes that a rank that alone writes may have: about what a core's own cache holds.
  static constexpr uint64_t kSoleBytes = 1 << 19;

  static constexpr bool in_line(uint64_t bytes) noexcept { return bytes <= WindowMemory::kInlineBytes; }
  static constexpr bool in_short_area(uint64_t bytes) noexcept {
    return !in_line(bytes) && bytes <= WindowMemory::kShortBytes;
  }
  static constexpr uint64_t flag(uint64_t step, uint64_t parts) noexcept { return step * (kWhole + 1) | parts; }
  void store_flag(uint64_t value) noexcept {
    last_flag_ = value;
    std::atomic<uint64_t>& published = lines_[rank_].published;
    if (Simulation::current) [[unlikely]]
      Simulation::current->sets(published, value);
    else
      published.store(value, std::memory_order_release);
  }
  void sign(uint32_t signature) noexcept {
    if (parts_ > 0) return;
    digest_ = (digest_ ^ signature) * 0x9e3779b1 + 1;
    lines_[rank_].digest = digest_;
  }
  // How many ranks' areas a rank that alone writes uses in turn: as many as caches hold, at least one's.
  uint64_t lenders(uint64_t bytes) const noexcept {
    return std::clamp<uint64_t>(kSoleBytes / (kBanks * bytes), 1, static_cast<uint64_t>(memory_.ranks()));
  }
  bool begin(uint64_t banks) noexcept {
    if (step_ + 1 >= banks) {
      // Looking half of the banks further ahead than needed makes most steps look at no other rank.
      needed_ = step_ + 2 - banks;
      if (all_published_ < needed_ && !seen_by_all(std::min(step_, needed_ + banks / 2)) &&
          !(banks == kLines && !crowded_ ? seen_after_polling() : seen_by_all(needed_)))
        return false;
    }
    lines_ = &memory_.line(0, ++step_);
    return true;
  }
  // With many banks, and a core for each rank, a rank that has used all of them polls for half of them for a while: to
  // follow the slowest rank step by step would take the line from that one each time. After that it takes what is free.
  [[gnu::noinline]] bool seen_after_polling() noexcept {
    if (std::exchange(polled_for_, needed_) != needed_) polls_ = 0;
    if (++polls_ < kSpinPolls || !seen_by_all(needed_)) return false;
    for (uint64_t more = kLines / 4; more > 0; more /= 2) seen_by_all(std::min(step_, all_published_ + more));
    return true;
  }
  // True when every other rank has published the step; then that is remembered.
  bool seen_by_all(uint64_t step) noexcept {
    for (int i = 0; i < memory_.ranks(); ++i)
      if (i != rank_ && memory_.line(i, step).published.load(std::memory_order_acquire) < flag(step, kWhole)) {
        lagging_ = i;
        return false;
      }
    all_published_ = step;
    return true;
  }

  WindowMemory memory_;
  int rank_;
  bool crowded_;
  int lagging_ = 0;
  uint64_t step_ = 0;
  WindowMemory::Line* lines_ = nullptr;  // of the current step, by local rank; nullptr: none has begun
  uint64_t parts_ = 0;                   // of it that this rank has published
  uint64_t last_flag_ = 0;               // that this rank published
  uint32_t digest_ = 0;                  // of the calls that this rank published
  int polls_ = 0;                        // of seen_after_polling()
  uint64_t polled_for_ = 0;              // the needed_ that they were for
  uint64_t shared_step_ = 0;             // up to here areas were used otherwise than in a run of steps of one writer
  uint64_t lenders_ = 0;                 // in that run
  uint64_t needed_ = 0;                  // to be published by all before the next step can begin; 0: nothing so far
  uint64_t all_published_ = 0;           // every rank has published this step
};

}  // namespace ibcoll
