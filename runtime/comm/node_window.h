// SPDX-License-Identifier: BSD-3-Clause
// Shared memory of the ranks of one team on one node: for each rank, lines (step number, digest of the call, a little
// data) and areas (much data), both used in turn. A step: write the own line or area, publish, read the others' once
// they published.
//
// Every rank publishes every step, with data or without, before it reads. So "a rank published step s" also means "it
// has left step s - 1", and with b banks the one of step s is free when all have published step s - b + 1.
//
// A rank may publish a step in parts, as what others have sent it lands: the others read each part as it comes.
//
// Where one rank alone writes (broadcast), it borrows the areas of the others, four of each in turn, and so runs
// further ahead. Area b of any rank is written in steps s with s mod 4 = b only, so steps of all kinds may follow each
// other. Should ranks disagree on who writes, two may write one area: the digests tell, at the latest in the next call.
// One writer of each flag; release on publish, acquire on read.
//
// The window gets its memory when a rank first uses it: lines, and of areas either all, or as much of each as steps
// have needed so far. A page in front of the lines is there from the start; it says how far that has come, and who has
// left.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/base/buffer.h"
#include "runtime/machine/core_hints.h"
#include "runtime/machine/doorbell.h"
#include "runtime/machine/simulation.h"
#include "runtime/machine/store_choice.h"
#include "runtime/transport/transport.h"

namespace ibcoll {

class NodeWindow {
 public:
  static constexpr int kBanks = 4;    // of areas
  static constexpr int kLines = 128;  // of lines: steps with little data may run further ahead
  static constexpr uint64_t kInlineBytes = 496;
  static constexpr uint64_t kWhole = (1 << 20) - 1;  // more parts than a step has

  // How blocks of a size that only two ranks know pass between these.
  struct Limits {
    uint64_t read_from = 0;    // bytes: rather read by one copy than copied through an area, where the kernel allows it
    uint64_t stream_from = 0;  // up to stream_to: rather copied all the same, in pieces, one after the other
    uint64_t stream_to = 0;
    bool streams(uint64_t bytes) const noexcept { return bytes >= stream_from && bytes < stream_to; }
  };

  // Bytes of node memory that a window of `ranks` ranks takes.
  static uint64_t footprint(int ranks, uint64_t area_bytes) noexcept {
    return control_bytes(ranks) +
           static_cast<uint64_t>(ranks) * (kLines * sizeof(Line) + kBanks * (area_bytes + kSkew));
  }

  // Makes a part of the node's memory, which others may have used, ready for the window of a team of `ranks` ranks
  // here; `tag` is no other team's. Called once, before any rank uses it.
  static Status prepare(NodeMemory& memory, uint64_t offset, uint64_t tag, int ranks, uint64_t area_bytes);
  // What the ranks of one window know of it before they use it, and after.
  struct Place {
    uint64_t offset = 0;
    uint64_t tag = 0;
    std::vector<int> jobs;  // as below; empty: there is no window
    int rank = 0;           // the local one
    uint64_t area_bytes = 0;
  };
  // The local rank is about to use the window. PEER_FAILED: the team could not be made, as others found meanwhile.
  static Status enter(NodeMemory& memory, const Place& place);
  // The local rank uses the window no more. The last rank that does so gives the memory back; the dead count as having
  // done so. False: others use it still, and one of them will give it back, unless it dies; then any of those that got
  // false may try again. `failed`: the team has failed, or could not be made: ranks that have not come to the window
  // may never do so, and must not any more.
  static bool leave_for_good(NodeMemory& memory, const Place& place, bool failed);

  // `jobs[i]`: job rank of local rank i. `base`: where `memory` has the window that begins at `offset` and is prepared.
  // For a rank alone on its node `memory` is nullptr, and `base` memory of its own, zeros. Both outlive the window.
  NodeWindow(NodeMemory* memory, std::byte* base, uint64_t area_bytes, std::vector<int> jobs, int rank, Limits limits,
             bool crowded, uint64_t offset = 0)
      : NodeWindow(memory, area_bytes, std::move(jobs), rank, crowded) {
    place(base, offset, limits);
  }
  // Before its place is known. Until then it is not used.
  NodeWindow(NodeMemory* memory, uint64_t area_bytes, std::vector<int> jobs, int rank, bool crowded)
      : memory_(memory),
        area_bytes_(area_bytes),
        jobs_(std::move(jobs)),
        rank_(rank),
        crowded_(crowded),
        stores_(StoreCosts(size() + 1)) {}
  void place(std::byte* base, uint64_t offset, const Limits& limits) noexcept {
    offset_ = offset;
    control_ = reinterpret_cast<Control*>(base);
    lines_ = reinterpret_cast<Line*>(base + control_bytes(size()));
    areas_ = reinterpret_cast<std::byte*>(lines_ + jobs_.size() * kLines);
    limits_ = limits;
  }

  // Ranks that wait for others of this window may sleep: `bells[i]` is the place of local rank i in `doorbell`, which
  // outlives the window.
  void use(Doorbell& doorbell, std::vector<int> bells) {
    doorbell_ = &doorbell;
    bells_ = std::move(bells);
  }
  // The bell of a local rank, or Doorbell::kNoBell.
  int bell(int local) const noexcept { return doorbell_ ? bells_[static_cast<size_t>(local)] : Doorbell::kNoBell; }
  // Wakes who sleeps until this rank publishes, for another reason.
  void ring() noexcept {
    if (doorbell_) doorbell_->ring();
  }
  // Who has not published what the last try for a step looked for.
  int behind() const noexcept { return behind_; }
  // True when `local` has not published what that step needs, so that nobody can begin it.
  bool holds_back(int local) const noexcept {
    return needed_ > 0 && line(local, needed_).published.load(std::memory_order_acquire) < flag(needed_, kWhole);
  }

  int size() const noexcept { return static_cast<int>(jobs_.size()); }
  int rank() const noexcept { return rank_; }
  int next(int local) const noexcept { return local + 1 == size() ? 0 : local + 1; }
  // Largest piece that one rank can publish in one step.
  uint64_t area_bytes() const noexcept { return area_bytes_; }
  // Where rank `local` puts (or put) `bytes` bytes in the current step: beside its flag when they fit there. With
  // steps_back = 1, in the step before: readable until this rank publishes the current one.
  std::byte* area(int local, uint64_t bytes, int steps_back = 0) noexcept {
    const uint64_t step = step_ - static_cast<uint64_t>(steps_back);
    return bytes <= kInlineBytes ? line(local, step).data : areas_ + area_offset(local, step);
  }
  // The same in a step in which `writer` alone writes.
  std::byte* sole_area(int writer, uint64_t bytes) noexcept {
    return area(bytes <= kInlineBytes ? writer : static_cast<int>(step_ / kBanks % lenders(bytes)), bytes);
  }
  // Copies into an area of the current step what `reader` reads, or all others do, once it is published.
  void write(Bytes to, ConstBytes from, int reader) noexcept { stores_.copy(reader, to, from); }
  void write(Bytes to, ConstBytes from) noexcept { stores_.copy(size(), to, from); }
  int job_rank(int local) const noexcept { return jobs_[static_cast<size_t>(local)]; }
  NodeMemory& memory() noexcept { return *memory_; }
  const Limits& limits() const noexcept { return limits_; }
  // True when ranks outnumber cores: a step costs a turn of all ranks of a core, so steps should be few.
  bool crowded() const noexcept { return crowded_; }

  // ---- for Comm: steps and turns

  // Begins the next step, in which no rank publishes more than `bytes` bytes; false: its place is not free yet.
  bool try_next_step(uint64_t bytes) noexcept {
    if (static_cast<int64_t>(bytes) > usable_ && !make_usable(bytes)) [[unlikely]]
      return false;
    const bool in_line = bytes <= kInlineBytes;
    if (!begin_step(in_line ? kLines : kBanks)) return false;
    if (!in_line) shared_step_ = step_;
    return true;
  }
  // The same for a step in which one rank alone writes: such steps in a row use the areas of all ranks in turn.
  bool try_next_sole_step(uint64_t bytes) noexcept {
    if (static_cast<int64_t>(bytes) > usable_ && !make_usable(bytes)) [[unlikely]]
      return false;
    if (bytes <= kInlineBytes) return begin_step(kLines);
    const uint64_t lenders_now = lenders(bytes);
    if (lenders_now != lenders_) shared_step_ = step_;
    lenders_ = lenders_now;
    const uint64_t since = step_ + 1 - shared_step_;
    return begin_step(std::clamp<uint64_t>(since, kBanks, std::min<uint64_t>(kLines, kBanks * lenders_)));
  }
  // The same for a step in which each rank says what it writes itself, to its own place or to others': who writes to
  // lines only runs as far ahead as lines go, whatever the others write.
  bool try_next_own_step(uint64_t bytes) noexcept {
    if (static_cast<int64_t>(bytes) > usable_ && !make_usable(bytes)) [[unlikely]]
      return false;
    if (!begin_step(bytes <= kInlineBytes ? kLines : kBanks)) return false;
    shared_step_ = step_;  // others may write to areas in it
    return true;
  }
  // All of the step, or all that is left of it.
  void publish(uint32_t signature) noexcept {
    sign(signature);
    stores_.fence();
    store_flag(flag(step_, kWhole));
    parts_ = 0;
    if (doorbell_) doorbell_->ring();
    prefetch_to_write(&line(rank_, step_ + 2));
  }
  // One more part of the step; publish() ends it. Who sleeps until this rank publishes is woken by that, and by parts
  // that are `worth_waking` for or that it can take on another processor.
  void publish_part(uint32_t signature, bool worth_waking) noexcept {
    sign(signature);
    stores_.fence();
    store_flag(flag(step_, ++parts_));
    if (doorbell_ && (worth_waking || !doorbell_->one_cpu())) doorbell_->ring();
  }
  // A part for which nobody waits: it holds the digest of the call alone, without which this rank may not look at
  // others.
  void publish_call(uint32_t signature) noexcept {
    sign(signature);
    store_flag(flag(step_, ++parts_));
  }
  // True when the rank has published so many parts of the step, or kWhole: all of it.
  bool published(int local, uint64_t parts) const noexcept {
    return line(local, step_).published.load(std::memory_order_acquire) >= flag(step_, parts);
  }
  // Of all calls up to this step, so that a call in which nobody looked at the odd rank is noticed in the next one.
  // Meaningful once the rank has published the step, as this one has.
  uint32_t digest(int local) const noexcept { return line(local, step_).digest; }
  uint64_t step() const noexcept { return step_; }
  // False: somebody else has written to the line in which this rank published last.
  bool own_line_intact() const noexcept {
    if (last_flag_ == 0) return true;
    const Line& own = line(rank_, last_flag_ / (kWhole + 1));
    return own.published.load(std::memory_order_relaxed) == last_flag_ && own.digest == digest_;
  }
  // False: no rank can have published what stands in the line of the current step.
  bool plausible(int local) const noexcept {
    return line(local, step_).published.load(std::memory_order_relaxed) / (kWhole + 1) <= step_ + kLines;
  }

  // The team has failed on this rank, with this status: before long its private memory is its caller's again, so the
  // exchange comes before what the caller then writes.
  void leave(int status) noexcept {
    if (control_) control_->members[rank_].left.exchange(status, std::memory_order_acq_rel);
  }
  // 0: what was read from the private memory of `local` up to now was still what that rank had published. Reads are
  // system calls, which end before this load begins.
  int left(int local) const noexcept { return control_->members[local].left.load(std::memory_order_seq_cst); }
  // The window has its lines. No step can begin before, and none has.
  bool has_lines() const noexcept { return usable_ >= 0; }
  // Why a step cannot begin for want of memory; ok: for another reason.
  const Status& trouble() const noexcept { return trouble_; }

  // Before this rank publishes, its collective has something to do: one of the following.
  bool wants_notice() const noexcept { return unconfirmed_reads_ | traced_; }
  // Since this rank published last, it has read private memory of others, and nobody has asked yet whether they live.
  bool has_unconfirmed_reads() const noexcept { return unconfirmed_reads_; }
  void set_unconfirmed_reads(bool any) noexcept { unconfirmed_reads_ = any; }
  // From now on a trace tells when this rank publishes.
  void trace() noexcept { traced_ = true; }

  // Collectives use the window one after another, in the order in which they were started.
  // So many may be taken before one of them ends. Throws std::bad_alloc.
  void expect_turns(int turns) { ended_.reserve(static_cast<size_t>(turns)); }
  uint64_t take_turn() noexcept { return next_turn_++; }
  bool has_turn(uint64_t turn) const noexcept { return turn == turn_; }
  // A collective that moves nothing ends without a step, perhaps before those that were started earlier.
  void end_turn(uint64_t turn) noexcept {
    if (turn != turn_) {
      ended_.push_back(turn);
      return;
    }
    do {
      ++turn_;
    } while (std::erase(ended_, turn_) > 0);
  }

 private:
  struct alignas(64) Line {
    std::atomic<uint64_t> published;  // flag()
    uint32_t digest;
    uint32_t unused;
    std::byte data[kInlineBytes];
  };
  static_assert(sizeof(Line) == 512);
  enum Presence : uint64_t { kAwaited = 0, kThere = 1, kGone = 2 };
  struct Member {
    std::atomic<int32_t> left;       // a status
    std::atomic<uint64_t> presence;  // tag << 2 | Presence
  };
  struct Control {
    enum State : uint64_t { kUnused = 0, kMaking = 1, kUsed = 2, kReleased = 3 };
    std::atomic<uint64_t> state;       // tag << 2 | State
    std::atomic<uint64_t> backed;      // bytes of each area that have memory
    std::atomic<uint64_t> called_off;  // not 0: who is awaited must not come
    Member members[];
  };
  static uint64_t control_bytes(int ranks) noexcept {
    constexpr uint64_t kPage = 4096;
    return (sizeof(Control) + static_cast<uint64_t>(ranks) * sizeof(Member) + kPage - 1) / kPage * kPage;
  }
  bool make_usable(uint64_t bytes) noexcept;
  bool make_lines() noexcept;
  Status back_lines() noexcept;
  Status back_areas(uint64_t bytes) noexcept;
  // Looks: where a rank spins, twice the time in which another reads half of the lines.
  static constexpr int kPatience = 256;
  static constexpr uint64_t flag(uint64_t step, uint64_t parts) noexcept { return step * (kWhole + 1) | parts; }
  // Areas do not start at the same place of the caches, of which each page has its own and contiguous ones have
  // neighbouring ones.
  static constexpr uint64_t kSkew = 325 * 64;
  // What a rank that alone writes may be ahead: about what a core's own cache holds.
  static constexpr uint64_t kSoleBytes = 1 << 19;

  void store_flag(uint64_t value) noexcept {
    last_flag_ = value;
    std::atomic<uint64_t>& published = line(rank_, step_).published;
    if (Simulation::current) [[unlikely]]
      Simulation::current->sets(published, value);
    else
      published.store(value, std::memory_order_release);
  }
  void sign(uint32_t signature) noexcept {
    if (parts_ > 0) return;
    digest_ = (digest_ ^ signature) * 0x9e3779b1 + 1;
    line(rank_, step_).digest = digest_;
  }
  // How many ranks' areas a rank that alone writes uses in turn: as many as caches hold, at least one's.
  uint64_t lenders(uint64_t bytes) const noexcept {
    return std::clamp<uint64_t>(kSoleBytes / (kBanks * bytes), 1, jobs_.size());
  }
  bool begin_step(uint64_t banks) noexcept {
    if (step_ + 1 >= banks) {
      // Looking half of the banks further ahead than needed makes most steps look at nobody.
      needed_ = step_ + 2 - banks;
      if (all_published_ < needed_ && !seen_by_all(std::min(step_, needed_ + banks / 2)) &&
          !(banks == kLines && !crowded_ ? seen_in_the_end() : seen_by_all(needed_)))
        return false;
    }
    ++step_;
    return true;
  }
  // With many banks, and a core for each rank, half of them is what a rank that has used all waits for, a while: to
  // follow the slowest one step by step would take the line from that one each time. After that it takes what there is.
  [[gnu::noinline]] bool seen_in_the_end() noexcept {
    if (std::exchange(patient_for_, needed_) != needed_) looks_ = 0;
    if (++looks_ < kPatience || !seen_by_all(needed_)) return false;
    for (uint64_t more = kLines / 4; more > 0; more /= 2) seen_by_all(std::min(step_, all_published_ + more));
    return true;
  }
  // True when every other rank has published the step; then that is remembered.
  bool seen_by_all(uint64_t step) noexcept {
    for (int i = 0; i < size(); ++i)
      if (i != rank_ && line(i, step).published.load(std::memory_order_acquire) < flag(step, kWhole)) {
        behind_ = i;
        return false;
      }
    all_published_ = step;
    return true;
  }

  // The lines of one step lie together.
  Line& line(int local, uint64_t step) const noexcept {
    return lines_[step % kLines * jobs_.size() + static_cast<uint64_t>(local)];
  }
  uint64_t area_offset(int local, uint64_t step) const noexcept {
    return (static_cast<uint64_t>(local) * kBanks + step % kBanks) * (area_bytes_ + kSkew);
  }

  NodeMemory* memory_;
  uint64_t offset_ = 0;
  Control* control_ = nullptr;
  Line* lines_ = nullptr;
  std::byte* areas_ = nullptr;
  uint64_t area_bytes_;
  std::vector<int> jobs_;
  int rank_;
  Limits limits_;
  bool crowded_;
  StoreChoice stores_;
  Doorbell* doorbell_ = nullptr;
  std::vector<int> bells_;
  // Bytes of each area that have memory, as far as this rank knows; at least those of a line. -1: not even lines.
  int64_t usable_ = -1;
  Status trouble_;
  bool unconfirmed_reads_ = false;
  bool traced_ = false;
  int behind_ = 0;              // behind()
  uint64_t step_ = 0;           // current
  uint64_t parts_ = 0;          // of it that this rank has published
  uint64_t last_flag_ = 0;      // that this rank published
  uint32_t digest_ = 0;         // of the calls that this rank published
  uint64_t shared_step_ = 0;    // up to here areas were used otherwise than in a run of steps of one writer
  uint64_t lenders_ = 0;        // in that run
  uint64_t needed_ = 0;         // to be published by all before the next step can begin; 0: nothing so far
  uint64_t all_published_ = 0;  // every rank has published this step
  uint64_t patient_for_ = 0;    // the needed_ for which seen_in_the_end() waits, since so many looks
  int looks_ = 0;
  uint64_t turn_ = 0;
  uint64_t next_turn_ = 0;
  std::vector<uint64_t> ended_;  // turns that ended before their time
};

}  // namespace ibcoll
