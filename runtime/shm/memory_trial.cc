// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/shm/memory_trial.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>
#include <vector>

#include "runtime/machine/copy.h"
#include "runtime/machine/wait_loop.h"
#include "runtime/shm/single_copy.h"

namespace ibcoll::shm {
namespace {

constexpr uint64_t kMostBytes = 65536;
constexpr uint64_t kFewBytes = 4096;
constexpr uint64_t kStreamPart = 1 << 18;  // of a stream
constexpr uint64_t kMostParts = 16;
constexpr uint32_t kNoPage = UINT32_MAX;
// Other programs may double all times for one or two milliseconds. So each kind is timed once in every round, and the
// best round counts.
constexpr int kRounds = 3;
constexpr size_t kTries = 5;    // in each round
constexpr size_t kWarmUps = 2;  // pages, and what the caches held before

// Windows and rings use the kind of store that is faster for them (runtime/machine/store_choice.h), so the time of the
// faster one is the cost of a copy. (Not quite: they consider the writer's time alone, and rows for leaders of other
// nodes are always stored into the caches.)
constexpr auto kWays = [] {
  std::array<bool, kHasStreamingStores ? 2 : 1> past_caches{};
  past_caches.back() = kHasStreamingStores;
  return past_caches;
}();

using Clock = std::chrono::steady_clock;

constexpr WaitStrategy kForPartner = WaitStrategy::yielding();  // timing begins as soon as it is here

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// Binds the calling thread to one processor, and restores where it may run.
class Moved {
 public:
  Moved() : was_known_(::sched_getaffinity(0, sizeof was_, &was_) == 0) {}
  Moved(const Moved&) = delete;
  Moved& operator=(const Moved&) = delete;
  ~Moved() {
    if (was_known_) ::sched_setaffinity(0, sizeof was_, &was_);
  }
  // A machine with more processors than a cpu_set_t holds, or a thread that has no other, stays as it is.
  void stay_at(int cpu) const {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(cpu, &only);
    if (was_known_) ::sched_setaffinity(0, sizeof only, &only);
  }
  void keep_off(int cpu) const {
    cpu_set_t others = was_;
    CPU_CLR(cpu, &others);
    if (was_known_ && CPU_COUNT(&others) > 0) ::sched_setaffinity(0, sizeof others, &others);
  }

 private:
  cpu_set_t was_{};
  bool was_known_;
};

class Trial {
 public:
  Trial(Segment& segment, int rank, int partner, Deadline deadline)
      : segment_(segment),
        mine_(segment.info(rank)),
        theirs_(segment.info(partner)),
        out_(segment.ring(rank, partner)),
        in_(segment.ring(partner, rank)),
        first_(rank < partner),
        bytes_(std::min(kMostBytes, segment.ring_bytes())),
        deadline_(deadline),
        from_(kStreamPart),
        to_(kStreamPart) {
    mine_.trial_memory.store(reinterpret_cast<uint64_t>(from_.data()), std::memory_order_relaxed);
  }

  MemoryModel run(bool reads) {
    const Moved moved;
    part(moved);
    borrow_stream();
    double copies = 0, few = 0, many = 0, streamed = 0;
    int rounds = 0;
    for (; rounds < kRounds; ++rounds) {
      for (const bool past_caches : kWays)
        time(copies, bytes_, [&] { return copy_through(out_, in_, bytes_, past_caches); });
      time(few, kMostBytes, [&] { return read(kFewBytes, reads); });
      time(many, kMostBytes, [&] { return read(kMostBytes, reads); });
      for (const bool past_caches : kWays)
        if (their_stream_) time(streamed, kStreamPart, [&] { return stream(past_caches); });
      if (late_) break;
    }
    if (stream_) segment_.release(mine_.trial_page.load(std::memory_order_relaxed) * kSegmentPage, stream_bytes_);
    MemoryModel model;
    if (rounds == 0) return model;
    model.copy_us_per_byte = copies / static_cast<double>(2 * bytes_);
    model.streamed_copy_us_per_byte = streamed / static_cast<double>(2 * kStreamPart);
    if (few == 0 || many == 0) return model;
    model.read_us_per_byte = std::max(0.0, many - few) / static_cast<double>(kMostBytes - kFewBytes);
    model.read_us = std::max(0.0, few - model.read_us_per_byte * static_cast<double>(kFewBytes));
    return model;
  }

 private:
  // Until the partner is at the same step; at once when it does not keep up.
  void meet() {
    mine_.trial_step.store(++step_, std::memory_order_release);
    const auto here = [this] { return theirs_.trial_step.load(std::memory_order_acquire) >= step_; };
    late_ = late_ || !WaitLoop(kForPartner, deadline_).until(here);
  }

  // Ranks that may run anywhere might run on one core.
  void part(const Moved& moved) {
    const int cpu = std::max(::sched_getcpu(), 0);
    mine_.trial_cpu.store(cpu, std::memory_order_relaxed);
    meet();
    if (first_)
      moved.stay_at(cpu);
    else
      moved.keep_off(theirs_.trial_cpu.load(std::memory_order_relaxed));
  }

  // Lowers `least` (0: not known yet) to the median of this round. Each run has fresh data, as a program would have.
  template <typename Run>
  void time(double& least, uint64_t bytes, Run run) {
    std::array<double, kTries> times{};
    for (size_t i = 0; i < kWarmUps + kTries && !late_; ++i) {
      std::memset(from_.data(), static_cast<int>(i), bytes);
      meet();
      times[i % kTries] = run();
      meet();
    }
    if (late_) return;
    std::nth_element(times.begin(), times.begin() + kTries / 2, times.end());
    const double median = times[kTries / 2];
    least = least == 0 ? median : std::min(least, median);
  }

  // Through rings, too, which carry nothing yet: no rank reads their bytes before a tail is published.
  double copy_through(std::byte* out, const std::byte* in, uint64_t bytes, bool past_caches) {
    Clock::time_point start = Clock::now();
    if (past_caches) {
      copy_streaming(out, from_.data(), bytes);
      fence_streaming();
    } else {
      std::memcpy(out, from_.data(), bytes);
    }
    const double writing = us_since(start);
    meet();
    start = Clock::now();
    std::memcpy(to_.data(), in, bytes);
    return writing + us_since(start);
  }

  // The first window takes this memory later. Each process finds each page once before times are taken.
  void borrow_stream() {
    stream_bytes_ = std::clamp(own_cache_bytes() / kStreamPart, uint64_t{1}, kMostParts) * kStreamPart;
    if (Result<uint64_t> mine = segment_.allocate(stream_bytes_); mine.ok()) {
      stream_ = segment_.heap(*mine);
      std::memset(stream_, 1, stream_bytes_);
      mine_.trial_page.store(static_cast<uint32_t>(*mine / kSegmentPage), std::memory_order_relaxed);
    } else {
      mine_.trial_page.store(kNoPage, std::memory_order_relaxed);
    }
    meet();
    const uint32_t theirs = theirs_.trial_page.load(std::memory_order_relaxed);
    if (!stream_ || theirs == kNoPage || late_) return;
    if (Result<std::byte*> there = segment_.map_heap(theirs * kSegmentPage, stream_bytes_); there.ok())
      their_stream_ = *there;
    if (!their_stream_) return;
    for (uint64_t at = 0; at < stream_bytes_; at += kSegmentPage)
      (void)static_cast<const volatile std::byte*>(their_stream_)[at];
  }

  double stream(bool past_caches) {
    at_ = (at_ + kStreamPart) % stream_bytes_;
    return copy_through(stream_ + at_, their_stream_ + at_, kStreamPart, past_caches);
  }

  double read(uint64_t bytes, bool reads) {
    if (!reads || late_) return 0;
    const Clock::time_point start = Clock::now();
    const Status status =
        read_process(theirs_.pid.load(std::memory_order_relaxed), theirs_.trial_memory.load(std::memory_order_relaxed),
                     std::span(to_).first(bytes));
    return status.ok() ? us_since(start) : 0;
  }

  Segment& segment_;
  RankInfo& mine_;
  RankInfo& theirs_;
  std::byte* const out_;
  const std::byte* const in_;
  const bool first_;
  const uint64_t bytes_;
  const Deadline deadline_;
  std::vector<std::byte> from_, to_;
  std::byte* stream_ = nullptr;
  const std::byte* their_stream_ = nullptr;  // nullptr: one of the two has none
  uint64_t stream_bytes_ = 0;
  uint64_t at_ = 0;
  uint64_t step_ = 0;
  bool late_ = false;
};

// The median of the models that have timed it: those for which `time` is not 0.
template <typename Time>
MemoryModel middle_by(std::vector<MemoryModel> timed, Time time) {
  std::erase_if(timed, [&](const MemoryModel& model) { return time(model) == 0; });
  if (timed.empty()) return {};
  const auto middle = timed.begin() + static_cast<std::ptrdiff_t>((timed.size() - 1) / 2);
  const auto key = [&](const MemoryModel& m) { return std::tuple(time(m), m.read_us); };  // ties are alike on all ranks
  std::nth_element(timed.begin(), middle, timed.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  return *middle;
}

}  // namespace

MemoryModel middle_of(std::vector<MemoryModel> timed) {
  MemoryModel middle = middle_by(
      timed, [](const MemoryModel& m) { return m.read_us + static_cast<double>(kMostBytes) * m.read_us_per_byte; });
  const MemoryModel copies = middle_by(timed, [](const MemoryModel& m) { return m.copy_us_per_byte; });
  middle.copy_us_per_byte = copies.copy_us_per_byte;
  middle.streamed_copy_us_per_byte = copies.streamed_copy_us_per_byte;
  return middle;
}

int trial_partner(int rank, int ranks) noexcept {
  if (ranks < 2) return -1;
  if (rank == 0) return ranks / 2;
  return rank == ranks / 2 ? 0 : -1;
}

MemoryModel time_memory(Segment& segment, int rank, int partner, bool reads, std::chrono::nanoseconds limit) {
  const Deadline deadline(Clock::now() + limit);
  if (!segment.ensure_pair(rank, partner).ok() || !segment.ensure_pair(partner, rank).ok()) return {};
  return Trial(segment, rank, partner, deadline).run(reads);
}

}  // namespace ibcoll::shm
