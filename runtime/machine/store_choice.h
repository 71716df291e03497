// SPDX-License-Identifier: BSD-3-Clause
// How a rank writes what another core of the node will read.
//
// An ordinary store waits until the line has left the cache of the core that read it last: 2 to 7 ns where the two
// cores share a cache, 28 where they do not. A streaming store goes to memory, past all caches, and nobody waits: 2 ns;
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

// What stores cost, and from that which to use. Knows no clock and moves nothing.
class StoreCosts {
 public:
  // Readers are 0 to `readers` - 1.
  explicit StoreCosts(int readers) : of_(static_cast<size_t>(readers)) {}

  struct Turn {
    bool streams;
    bool timed;
  };
  // The next copy for this reader. Every now and then one goes the way that seems the slower one, to notice when it no
  // longer is.
  Turn next(int reader) noexcept {
    Reader& r = of_[static_cast<size_t>(reader)];
    const bool streams = streaming_.known() && r.ordinary.value > kGain * streaming_.value;
    r.turn = r.turn + 1 < (r.ordinary.settled() ? kPeriod : kTimed + 1) ? r.turn + 1 : 0;
    return {(r.turn == 0) != streams, r.turn % kTimed == 0};
  }
  // What a timed copy has cost, per byte, in any unit; more than 0.
  void learn(int reader, bool streams, float cost) noexcept {
    (streams ? streaming_ : of_[static_cast<size_t>(reader)].ordinary).add(cost);
  }

 private:
  static constexpr uint32_t kTimed = 16;   // one copy in so many
  static constexpr uint32_t kPeriod = 61;  // prime: not always the same block of a collective, or the same bank
  static constexpr uint32_t kFirst = 4;
  // Streaming has to save its reader's way to memory.
  static constexpr float kGain = 1.5F;

  struct Cost {
    float value = 0;
    uint32_t times = 0;

    bool known() const noexcept { return times > 0; }
    bool settled() const noexcept { return times == kFirst; }
    // At first, when pages may be new, the newest is believed. Later it counts for a step, and a smaller one up than
    // down: an interruption makes any copy dear.
    void add(float cost) noexcept {
      value = settled() ? std::clamp(cost, value * 0.25F, value * 2) : cost;
      if (!settled()) ++times;
    }
  };
  struct Reader {
    Cost ordinary;
    uint32_t turn = 0;
  };

  std::vector<Reader> of_;
  Cost streaming_;  // whoever reads
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
  // Before the store that tells the readers.
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
