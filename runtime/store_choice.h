// SPDX-License-Identifier: BSD-3-Clause
// How a rank writes what another core of the node will read.
//
// An ordinary store waits until the line has left the cache of the core that read it last: 2 to 7 ns where the two cores share
// a cache, 28 where they do not. A streaming store goes to memory, past all caches, and nobody waits: 2 ns; but there the reader
// has to fetch the line, 5 ns instead of 2 from a cache that both share. So it depends on where the reader runs, and in
// a virtual machine on the moment: both kinds are timed in use, for each reader. (Times of one machine, see
// docs/design/0003-node-window.md.)
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/buffer.h"
#include "runtime/copy.h"

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
  // The next copy for this reader. Every now and then one goes the way that seems the slower one, to notice when it no longer is.
  Turn next(int reader) noexcept {
    Reader& r = of_[static_cast<size_t>(reader)];
    const bool streams = r.ordinary > kGain * streaming_ && streaming_ > 0;
    r.turn = r.turn + 1 < kPeriod ? r.turn + 1 : 0;
    return {(r.turn == 0) != streams, r.turn % kTimed == 0};
  }
  // What a timed copy has cost, per byte, in any unit.
  void learn(int reader, bool streams, float cost) noexcept {
    float& known = streams ? streaming_ : of_[static_cast<size_t>(reader)].ordinary;
    known = known == 0 ? cost : std::clamp(cost, known * 0.75F, known * 2);
  }

 private:
  static constexpr uint32_t kTimed = 16;   // one copy in so many
  static constexpr uint32_t kPeriod = 61;  // prime: not always the same block of a collective, or the same bank
  // Streaming has to save its reader's way to memory.
  static constexpr float kGain = 1.5F;

  struct Reader {
    float ordinary = 0;            // 0: not known yet
    uint32_t turn = kPeriod - 17;  // soon, but not before every bank has its pages
  };

  std::vector<Reader> of_;
  float streaming_ = 0;  // for whoever reads; 0: not known yet
};

class StoreChoice {
 public:
  explicit StoreChoice(StoreCosts costs) : costs_(std::move(costs)) {}

  void copy(int reader, Bytes to, ConstBytes from) noexcept {
    if (!kStreams || from.size() < kLeast) {
      if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
      return;
    }
    const auto [streams, timed] = costs_.next(reader);
    if (!timed) return copy(streams, to, from);
    drain_stores();
    const uint64_t start = cycles();
    copy(streams, to, from);
    drain_stores();
    costs_.learn(reader, streams, static_cast<float>(cycles() - start) / static_cast<float>(from.size()));
  }
  // Before the store that tells the readers.
  void fence() noexcept {
    if (streamed_) fence_streaming();
    streamed_ = false;
  }

 private:
  static constexpr uint64_t kLeast = 1024;  // bytes: with fewer a core goes on before they are stored

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
