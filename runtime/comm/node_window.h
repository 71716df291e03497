// SPDX-License-Identifier: BSD-3-Clause
// Shared memory of the ranks of one team on one node: for each rank, lines (step number, digest of the call, a little
// data), short areas (some KB) and areas (much data), all used in turn. A step: write the own line or area, publish,
// read the others' once they published.
//
// Every rank publishes every step, with data or without, before it reads. So "a rank published step s" also means "it
// has left step s - 1", and with b banks the one of step s is free when all have published step s - b + 1.
//
// A rank may publish a step in parts, as what others have sent it lands: the others read each part as it comes.
//
// Where one rank alone writes (broadcast), it borrows the areas of the others, four of each in turn, and so runs
// further ahead. Area b of any rank is written in steps s with s mod 4 = b only, so steps of all kinds may follow each
// other. Should ranks disagree on the writer, two may write one area: the digests show that, at the latest in the next
// call.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/base/buffer.h"
#include "runtime/comm/window_memory.h"
#include "runtime/comm/window_presence.h"
#include "runtime/comm/window_queue.h"
#include "runtime/comm/window_steps.h"
#include "runtime/machine/doorbell.h"
#include "runtime/machine/store_choice.h"

namespace ibcoll {

// How ranks of a window that sleep are woken.
class WindowBells {
 public:
  // Ranks that wait for others of this window may sleep: `bells[i]` is the index of local rank i in `doorbell`, which
  // outlives the window.
  void use(Doorbell& doorbell, std::vector<int> bells) {
    doorbell_ = &doorbell;
    bells_ = std::move(bells);
  }
  // The bell of a local rank; Doorbell::kNoBell: none.
  int of(int local) const noexcept { return doorbell_ ? bells_[static_cast<size_t>(local)] : Doorbell::kNoBell; }
  // Wakes the ranks that sleep until this rank publishes.
  void ring() noexcept {
    if (doorbell_) doorbell_->ring();
  }
  // The same, after a part of a step. All of them share one processor: `worth_waking` decides.
  void ring_for_part(bool worth_waking) noexcept {
    if (doorbell_ && (worth_waking || !doorbell_->one_cpu())) doorbell_->ring();
  }

 private:
  std::vector<int> bells_;
  Doorbell* doorbell_ = nullptr;
};

class NodeWindow {
 public:
  static constexpr int kBanks = WindowMemory::kBanks;
  static constexpr int kLines = WindowMemory::kLines;
  static constexpr uint64_t kInlineBytes = WindowMemory::kInlineBytes;
  static constexpr uint64_t kWhole = WindowSteps::kWhole;

  // How blocks of a size that only two ranks know pass between these.
  struct Limits {
    uint64_t read_from = 0;    // bytes: rather read by one copy than copied through an area, where the kernel allows it
    uint64_t stream_from = 0;  // up to stream_to: rather copied all the same, in segments, one after the other
    uint64_t stream_to = 0;
    bool streams(uint64_t bytes) const noexcept { return bytes >= stream_from && bytes < stream_to; }
  };

  // `jobs[i]`: job rank of local rank i. `crowded`: ranks outnumber cores. For a rank alone on its node `memory` is
  // nullptr. It outlives the window, which must not be used before its place is known.
  NodeWindow(NodeMemory* memory, uint64_t area_bytes, std::vector<int> jobs, int rank, bool crowded)
      : steps_(WindowMemory(memory, static_cast<int>(jobs.size()), area_bytes), rank, crowded),
        jobs_(std::move(jobs)),
        stores_(StoreCosts(size() + 1)) {}
  // `base`: where `memory` has the window that begins at `offset` and is prepared; for a rank alone, zeros of its own.
  // It outlives the window, too.
  void place(std::byte* base, uint64_t offset, const Limits& limits) noexcept {
    memory().place(base, offset);
    presence_.place(memory().control(), rank());
    limits_ = limits;
  }
  NodeWindow(NodeMemory* memory, std::byte* base, uint64_t area_bytes, std::vector<int> jobs, int rank, Limits limits,
             bool crowded, uint64_t offset = 0)
      : NodeWindow(memory, area_bytes, std::move(jobs), rank, crowded) {
    place(base, offset, limits);
  }

  // ---- for algorithms

  int size() const noexcept { return steps_.memory().ranks(); }
  int rank() const noexcept { return steps_.rank(); }
  int next(int local) const noexcept { return local + 1 == size() ? 0 : local + 1; }
  int job_rank(int local) const noexcept { return jobs_[static_cast<size_t>(local)]; }
  // The most that one rank can publish in one step.
  uint64_t area_bytes() const noexcept { return steps_.memory().area_bytes(); }
  const Limits& limits() const noexcept { return limits_; }
  // True when ranks outnumber cores: in a step each rank of a core has to run, so steps should be few.
  bool crowded() const noexcept { return steps_.crowded(); }
  // The memory where rank `local` puts (or put) `bytes` bytes in the current step: beside its flag when they fit there.
  // With steps_back = 1, in the step before: readable until this rank publishes the current one.
  std::byte* area(int local, uint64_t bytes, int steps_back = 0) const noexcept {
    return steps_.area(local, bytes, steps_back);
  }
  // The same in a step in which each rank says what it writes itself: blocks of some KB have short areas. Writer and
  // reader give the same number of bytes.
  std::byte* own_area(int local, uint64_t bytes) const noexcept { return steps_.own_area(local, bytes); }
  // The same in a step in which `writer` alone writes.
  std::byte* sole_area(int writer, uint64_t bytes) const noexcept { return steps_.sole_area(writer, bytes); }
  // Copies into an area of the current step what `reader` reads, or all others do, once it is published.
  void write(Bytes to, ConstBytes from, int reader) noexcept { stores_.copy(reader, to, from); }
  void write(Bytes to, ConstBytes from) noexcept { stores_.copy(size(), to, from); }
  // True when the rank has published this number of parts of the step, or kWhole: all of it.
  bool published(int local, uint64_t parts) const noexcept { return steps_.published(local, parts); }

  // ---- for Comm

  // All of the step, or all that is left of it.
  void publish(uint32_t signature) noexcept {
    stores_.fence();
    steps_.publish(signature);
    bells_.ring();
  }
  // One more part of the step; publish() ends it. Ranks that sleep until this rank publishes are woken by that, and by
  // parts that are `worth_waking` for or that they can take on another processor.
  void publish_part(uint32_t signature, bool worth_waking) noexcept {
    stores_.fence();
    steps_.publish_part(signature);
    bells_.ring_for_part(worth_waking);
  }
  // A part for which no rank waits: it holds the digest of the call alone, without which this rank may not look at
  // others.
  void publish_call(uint32_t signature) noexcept { steps_.publish_part(signature); }
  // Before this rank publishes, its collective has something to do: one of the following.
  bool wants_notice() const noexcept { return unconfirmed_reads_ | traced_; }
  // Since this rank published last, it has read private memory of others, and has not yet asked whether they live.
  bool has_unconfirmed_reads() const noexcept { return unconfirmed_reads_; }
  void set_unconfirmed_reads(bool any) noexcept { unconfirmed_reads_ = any; }
  // From now on a trace notes when this rank publishes.
  void trace() noexcept { traced_ = true; }

  // ---- its parts

  WindowSteps& steps() noexcept { return steps_; }
  const WindowSteps& steps() const noexcept { return steps_; }
  WindowMemory& memory() noexcept { return steps_.memory(); }
  WindowPresence& presence() noexcept { return presence_; }
  WindowQueue& queue() noexcept { return queue_; }
  WindowBells& bells() noexcept { return bells_; }

 private:
  WindowSteps steps_;
  WindowPresence presence_;
  WindowQueue queue_;
  bool unconfirmed_reads_ = false;
  bool traced_ = false;
  std::vector<int> jobs_;
  WindowBells bells_;
  Limits limits_;
  StoreChoice stores_;
};

}  // namespace ibcoll
