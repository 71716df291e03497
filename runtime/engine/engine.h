// SPDX-License-Identifier: BSD-3-Clause
// Moves everything of one process forward: takes events from the transports to the collectives that wait for them,
// resumes tasks, retries what had no credit, notices stalls. One per context (or per simulated rank). Not thread safe:
// the context's lock is held around every call.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/base/buffer.h"
#include "runtime/engine/channel.h"
#include "runtime/transport/transport.h"

namespace ibcoll {

class Team;
class Request;

struct EngineLimits {
  uint64_t eager_bytes = 8192;        // largest message that goes without an advertisement; the same on all ranks
  uint32_t eager_ahead = 32;          // eager messages to one peer in one collective that it has not taken yet
  uint64_t spill_bytes = 2 << 20;     // that others may leave in the landing memory of a rank that is late; 0: none
  uint32_t collectives_ahead = 128;   // collectives with eager messages to one peer that it has not completed yet
  uint64_t bytes_ahead = 1 << 19;     // of these messages, when the next collective begins
  Time timeout_ns = 600'000'000'000;  // of a collective; 0: none
  const char* timeout_origin = "IBCOLL_TIMEOUT";
  Time stall_ns = 1'000'000'000;  // a wait this long makes ranks compare their calls
};

// A note that came before the collective (or the announcement) that it belongs to. Payload follows.
struct EarlyMessage {
  EarlyMessage* next;
  Note note;
  int peer;  // team rank
  uint32_t bytes;
  uint32_t capacity;
  std::byte* payload() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
};

class Engine {
 public:
  // `route[r]`: the transport that reaches job rank r; nullptr for oneself and in a job of one. All outlive the engine.
  Engine(int rank, std::vector<Transport*> route, EngineLimits limits);
  // One transport reaches all: simulated ranks, of which there may be too many for a list of p each.
  Engine(int rank, int size, Transport& transport, EngineLimits limits);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  const EngineLimits& limits() const noexcept { return limits_; }
  Time now() const noexcept;
  void set_timeout(Time ns, const char* origin) noexcept { limits_.timeout_ns = ns, limits_.timeout_origin = origin; }

  // All that is in flight waits for one rank of this node: its bell. Exchange::kNoBell: there is none.
  int awaited_bell() const noexcept;
  // All tasks that wait for shared memory wait for the rows that the leader of this node collects, its own and those of
  // other nodes.
  bool awaits_leaders() const noexcept;
  // A task waits for a flag in the node's memory.
  bool polls_memory() const noexcept { return !memory_waits_.empty(); }
  // One pass; true when anything moved. Never blocks.
  bool progress() noexcept;
  // The same for what tasks wait for in shared memory alone.
  bool look_at_memory() noexcept { return run_memory_waits(); }
  bool waits_for_memory() const noexcept { return !memory_waits_.empty(); }
  // Since the start: messages and completions of transports, tasks that found what they waited for in memory, and
  // slices of copies.
  uint64_t events() const noexcept { return handled_; }
  // Questions of stalled ranks, meant for failures, that let a healthy rank send what it could not: each is a fault of
  // this library, which cost the job a second.
  uint64_t questions_that_helped() const noexcept { return questions_that_helped_; }
  // When progress() will send to ranks that are late, unless something happens before; 0: not at all. For simulated
  // time.
  Time spills_at() const noexcept { return arrival_waits_.empty() ? 0 : idle_since_ + kSpillAfter; }
  // For a rank that has waited for a while: looks for dead peers, stalls and deadlines.
  void check() noexcept;

  // A team is added before this rank does what lets other ranks use theirs. So notes of an unknown team are late: it
  // was freed here. Throws std::bad_alloc, and nothing has changed.
  void add(Team& team);
  void remove(Team& team);
  // Nothing that the program has started is in flight.
  bool idle() const noexcept;
  // One line per collective in flight.
  std::string describe() const;

  // ---- for Team and Exchange

  Transport& transport(int job_rank) noexcept { return *route_[static_cast<size_t>(job_rank) & route_mask_]; }
  // Resumes the request's task until it waits or ends.
  void run(Request& request) noexcept;
  // False: no memory.
  bool retry(Channel& channel) noexcept { return list(blocked_, channel); }
  void forget(Channel& channel) noexcept;
  void forget(Request& request) noexcept;
  // Of a copy that is done while nothing else can be, at a time.
  static constexpr uint64_t kIdleSlice = 32 << 10;
  // Its copy_slice() is called while nothing moves, until that returns true. False: there is no room in the list.
  bool copies_when_idle(Exchange& exchange) noexcept;
  void forget_copy(Exchange& exchange) noexcept {
    if (!idle_copies_.empty()) forget_copies_of(exchange);
  }
  // A team has to return credit.
  void credit_is_due() noexcept { credit_due_ = true; }
  // A question of a stalled rank said that it has completed more collectives than was known.
  void question_brought_credit() noexcept {
    if (!blocked_.empty() && retry_blocked()) ++questions_that_helped_;
  }
  // A team has failed: its requests end in the next progress().
  void team_failed() noexcept;
  EarlyMessage* early_message(int peer, const Note& note, ConstBytes payload) noexcept;
  void recycle(EarlyMessage* message) noexcept;
  void on_failure(const Event& event) noexcept;
  void peer_failed(int job_rank, std::string_view why) noexcept;
  // The same from the launcher, which knows best how the rank ended: where its failure is known already, this is the
  // reason that counts.
  void peer_ended(int job_rank, std::string_view how) noexcept;
  // Continues with what shared memory holds until nothing moves. What a rank has published counts, although it ended or
  // failed before others looked: to be called between the news of that and what follows from it.
  void take_from_memory() noexcept;
  bool dead(int job_rank) const noexcept { return any_dead_ && dead_[static_cast<size_t>(job_rank)]; }
  // This rank lacks the means to reach some other one.
  bool lacks_a_way() const noexcept { return !lacking_.empty(); }
  // As far as is known.
  bool reaches(int job_rank) const noexcept;

 private:
  void dispatch(const Event& event) noexcept;
  void answer_for_freed_team(const Event& event) noexcept;
  // False: no memory.
  template <typename T>
  static bool list(std::vector<T*>& list, T& one) noexcept {
    try {
      list.push_back(&one);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  void wait_in(std::vector<Request*>& waits, bool& listed, Request& request) noexcept;
  bool poll_transports() noexcept;
  bool run_memory_waits() noexcept;
  bool retry_blocked() noexcept;
  bool serve_late_peers() noexcept;
  bool still_busy() noexcept;
  bool copy_a_slice() noexcept;
  void end_failed() noexcept;
  void forget_copies_of(Exchange& exchange) noexcept;

  int rank_;
  int size_;
  size_t route_mask_ = ~size_t{0};  // 0: the first one reaches all
  std::vector<Transport*> route_;
  std::vector<Transport*> transports_;  // distinct
  EngineLimits limits_;
  std::array<Event, 16> events_;
  std::unordered_map<uint64_t, Team*> teams_;
  Team* last_team_ = nullptr;
  std::vector<std::pair<uint64_t, Status>>
      failed_teams_;                    // epoch and failure of teams that had failed when they were freed
  std::vector<Request*> memory_waits_;  // tasks that wait for a flag in shared memory
  std::vector<Channel*> blocked_;
  std::vector<Exchange*> idle_copies_;
  // Tasks that wait for an arrival although they could send to peers that are late, and since when nothing has moved.
  static constexpr Time kSpillAfter = 50'000;
  std::vector<Request*> arrival_waits_;
  Time idle_since_ = 0;
  uint32_t idle_passes_ = 0;
  uint64_t handled_ = 0;
  uint64_t questions_that_helped_ = 0;
  bool credit_due_ = false;
  bool failed_ = false;
  EarlyMessage* free_small_ = nullptr;
  EarlyMessage* free_large_ = nullptr;
  bool any_dead_ = false;
  std::vector<bool> dead_;                       // by job rank; of simulated ranks only once a peer has failed
  std::vector<std::pair<int, Status>> lacking_;  // job ranks that this one lacks the means to reach
};

}  // namespace ibcoll
