// SPDX-License-Identifier: BSD-3-Clause
// How a rank writes what another core of the node will read.
//
// An ordinary store waits until the line has left the cache of the core that read it last: 2 to 7 ns where the two
// cores share a cache, 28 where they do not. A streaming store goes to memory, past all caches, without a wait: 2 ns;
// but there the reader has to fetch the line, 5 ns instead of 2 from a cache that both share. So it depends on where
// the reader runs, and in a virtual machine on the moment: both kinds are timed in use, for each reader. (Times of one
// machine, see docs/design/0003-node-window.md.)
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/base/buffer.h"
#include "runtime/machine/copy.h"
#include "runtime/machine/simulation.h"

namespace ibcoll {

// Keeps the cost of stores, and chooses by it which to use. Knows no clock and moves nothing.
class StoreCosts {
 public:
  // Readers are 0 to `readers` - 1.
  explicit StoreCosts(int readers) : of_(static_cast<size_t>(readers)) {}

  struct Choice {
    bool streams;
    bool timed;
  };
  // The next copy for this reader. From time to time a copy uses the kind that seems slower, to notice when it no
  // longer is.
  Choice next(int reader) noexcept {
    Reader& r = of_[static_cast<size_t>(reader)];
    const bool streams = streaming_.known() && r.ordinary.value > kGain * streaming_.value;
    r.copies = r.copies + 1 < (r.ordinary.is_stable() ? kPeriod : kTimed + 1) ? r.copies + 1 : 0;
    return {(r.copies == 0) != streams, r.copies % kTimed == 0};
  }
  // Notes the cost of a timed copy, per byte, in any unit; more than 0.
  void learn(int reader, bool streams, float cost) noexcept {
    (streams ? streaming_ : of_[static_cast<size_t>(reader)].ordinary).add(cost);
  }

 private:
  static constexpr uint32_t kTimed = 16;   // every n-th copy is timed
  static constexpr uint32_t kPeriod = 61;  // prime: not always the same block of a collective, or the same bank
  static constexpr uint32_t kFirst = 4;
  // Streaming has to save more than its reader loses by reading from memory.
  static constexpr float kGain = 1.5F;

  struct Cost {
    float value = 0;
    uint32_t times = 0;

    bool known() const noexcept { return times > 0; }
    bool is_stable() const noexcept { return times == kFirst; }
    // At first, when pages may be new, the last time counts. Later a time changes the value by a bounded step, upwards
    // by less than downwards, as an interruption makes any copy slow.
    void add(float cost) noexcept {
      value = is_stable() ? std::clamp(cost, value * 0.25F, value * 2) : cost;
      if (!is_stable()) ++times;
    }
  };
  struct Reader {
    Cost ordinary;
    uint32_t copies = 0;
  };

  std::vector<Reader> of_;
  Cost streaming_;  // for any reader
};

class StoreChoice {
 public:
  explicit StoreChoice(StoreCosts costs) : costs_(std::move(costs)) {}

  void copy(int reader, Bytes to, ConstBytes from) noexcept {
    if (Simulation::current || !kHasStreamingStores || from.size() < kLeastToStream) {
      if (!from.empty() && !work_is_simulated(to.data(), from.data(), from.size()))
        std::memcpy(to.data(), from.data(), from.size());
      return;
    }
    const auto [streams, timed] = costs_.next(reader);
    if (!timed) return copy(streams, to, from);
    const uint64_t start = cycles_between_stores();
    copy(streams, to, from);
    const uint64_t end = cycles_between_stores();
    if (end > start) costs_.learn(reader, streams, static_cast<float>(end - start) / static_cast<float>(from.size()));
  }
  // Before the store that notifies the readers.
  void fence() noexcept {
    if (streamed_) fence_streaming();
    streamed_ = false;
  }

 private:
  void copy(bool streams, Bytes to, ConstBytes from) noexcept {
    if (!streams) {
      std::memcpy(to.data(), from.data(), from.size());
      return;
    }
    streamed_ = true;
    copy_streaming(to.data(), from.data(), from.size());
  }

  StoreCosts costs_;
  bool streamed_ = false;  // since the last fence
};

}  // namespace ibcoll
