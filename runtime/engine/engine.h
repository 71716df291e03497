// SPDX-License-Identifier: BSD-3-Clause
// Moves everything of one process forward: takes events from the transports to the teams that they are for, and runs
// what can continue without an event. One per context (or per simulated rank). Not thread safe: the context's lock is held
// around every call.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/base/arena.h"
#include "runtime/engine/early_messages.h"
#include "runtime/engine/lost_ranks.h"
#include "runtime/engine/scheduler.h"
#include "runtime/machine/scratch_pool.h"
#include "runtime/transport/transport.h"

namespace ibcoll {

class Team;

struct EngineLimits {
  uint64_t eager_bytes = 8192;        // largest message that goes without an advertisement; the same on all ranks
  uint32_t eager_ahead = 32;          // eager messages to one peer in one collective that it has not taken yet
  uint64_t spill_bytes = 2 << 20;     // that others may leave in the landing memory of a rank that is late; 0: none
  uint32_t collectives_ahead = 1024;  // collectives with eager messages to one peer that it has not completed yet
  uint64_t bytes_ahead = 1 << 19;     // of these messages, when the next collective begins
  Time timeout_ns = 600'000'000'000;  // of a collective; 0: none
  const char* timeout_origin = "IBCOLL_TIMEOUT";
  uint32_t calls_at_once = 64;  // in flight before lists grow, a power of two; twice as many records are kept
  size_t call_bytes = Arena::kUsualChunk;  // of memory that a call takes at first
  Time stall_ns = 1'000'000'000;           // a wait this long makes ranks compare their calls
  bool deaths_are_reported = false;        // to all ranks, by the launcher
};

class Engine {
 public:
  // `route[r]`: the transport that reaches job rank r; nullptr for oneself and in a job of one. All outlive the engine.
  Engine(int rank, std::vector<Transport*> route, EngineLimits limits);
  // One transport reaches all: simulated ranks, of which there may be too many for a list of p each.
  // They share `events`, too.
  Engine(int rank, int size, Transport& transport, EngineLimits limits, std::span<Event> events);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  const EngineLimits& limits() const noexcept { return limits_; }
  void set_timeout(Time ns, const char* origin) noexcept { limits_.timeout_ns = ns, limits_.timeout_origin = origin; }
  Time now() const noexcept;

  // ---- for the context

  // Returns true when anything moved in one pass. Never blocks. `looks`: at a transport, while there is nothing else to
  // look at.
  bool progress(uint32_t looks = 1) noexcept;
  // The part of a pass that takes messages and completions from transports, as soon as there are any; false: there were
  // none within `looks` looks.
  bool take_messages(uint32_t looks) noexcept {
    return transports_.size() == 1 ? take_events(*transports_.front(), looks) : poll_transports(looks);
  }
  // For a rank that has waited for a while: looks for dead peers, stalls and deadlines.
  void check() noexcept;
  // All that is in flight waits for one rank of this node: its bell. Exchange::kNoBell: there is none.
  int awaited_bell() const noexcept;
  // Nothing that the program has started is in flight.
  bool idle() const noexcept;
  // Since the start: messages and completions of transports, and what the scheduler counts.
  uint64_t events() const noexcept { return handled_ + scheduler_.events(); }
  uint64_t passes() const noexcept { return passes_; }
  // One line per collective in flight.
  std::string describe() const;
  // The launcher, which knows best how a rank ended, reports that it has: where its failure is known already, this is
  // the reason that counts.
  void peer_ended(int job_rank, std::string_view how) noexcept;

  // ---- for teams

  // A team is added before this rank does what lets other ranks use theirs. So notes of an unknown team are late: it
  // was freed here. Throws std::bad_alloc, and nothing has changed.
  void add(Team& team);
  void remove(Team& team);
  Transport& transport(int job_rank) noexcept { return *route_[static_cast<size_t>(job_rank) & route_mask_]; }
  Scheduler& scheduler() noexcept { return scheduler_; }
  const Scheduler& scheduler() const noexcept { return scheduler_; }
  EarlyMessages& early_messages() noexcept { return early_messages_; }
  // nullptr: simulated ranks have none, as there are too many for a mapping each.
  ScratchPool* scratch_pool() noexcept { return scratch_pool_.get(); }
  const LostRanks& lost() const noexcept { return lost_; }
  // No peer has a right to write but those to what is in flight.
  void end_rests() noexcept;
  // A team has to return credit.
  void credit_is_due() noexcept { credit_due_ = true; }
  // A team has failed: its requests end in the next progress().
  void team_failed() noexcept;
  // Continues with what shared memory holds until nothing moves. What a rank has published counts, although it ended or
  // failed before others looked: to be called between the news of that and what follows from it.
  void take_from_memory() noexcept;

 private:
  void dispatch(const Event& event) noexcept;
  void answer_for_freed_team(const Event& event) noexcept;
  bool poll_transports(uint32_t looks) noexcept;
  bool take_events(Transport& transport, uint32_t looks) noexcept;
  void return_credit() noexcept;
  void end_failed() noexcept;
  void on_failure(const Event& event) noexcept;
  void peer_failed(int job_rank, std::string_view why) noexcept;

  int rank_;
  int size_;
  size_t route_mask_ = ~size_t{0};  // 0: the first one reaches all
  std::vector<Transport*> route_;
  std::vector<Transport*> transports_;  // distinct
  EngineLimits limits_;
  Scheduler scheduler_;
  EarlyMessages early_messages_;
  LostRanks lost_;
  std::unique_ptr<ScratchPool> scratch_pool_;
  std::unique_ptr<Event[]> own_events_;
  std::span<Event> events_;  // of one poll
  std::unordered_map<uint64_t, Team*> teams_;
  Team* last_team_ = nullptr;
  std::vector<std::pair<uint64_t, Status>> failed_teams_;  // epoch and failure, of teams that were freed
  uint64_t handled_ = 0;
  uint64_t passes_ = 0;
  bool credit_due_ = false;
  bool failed_ = false;
};

}  // namespace ibcoll
