// SPDX-License-Identifier: BSD-3-Clause
// The state of one process: settings, the job it belongs to, transports, engine, teams. The C API is a thin layer over
// it.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "bootstrap/bootstrap.h"
#include "runtime/base/config.h"
#include "runtime/collectives/framework/algorithm.h"
#include "runtime/collectives/framework/arguments.h"
#include "runtime/collectives/framework/select.h"
#include "runtime/context/answerer.h"
#include "runtime/context/drainer.h"
#include "runtime/context/ended_ranks.h"
#include "runtime/context/host.h"
#include "runtime/context/join.h"
#include "runtime/context/plans.h"
#include "runtime/context/trace_file.h"
#include "runtime/context/tuning.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/request.h"
#include "runtime/engine/team.h"
#include "runtime/machine/call_site.h"
#include "runtime/machine/doorbell.h"
#include "runtime/machine/fork_watch.h"
#include "runtime/machine/user_memory.h"
#include "runtime/machine/wait_strategy.h"

namespace ibcoll {

class Context;

// The node window of a rank that is alone on its node, in a team some of whose ranks are not.
struct FreeMemory {
  void operator()(std::byte* memory) const noexcept { (void)free_memory(memory); }
};
using LoneWindow = std::unique_ptr<std::byte, FreeMemory>;

// A window of a team that was freed on this rank, not yet by all. It is in a list of its own from when the team is
// made, so that freeing needs no memory.
struct LeftWindow {
  WindowLocation place;
  bool failed = false;
};

// A team and what belongs to it on this rank.
struct TeamHandle {
  TeamHandle() = default;
  TeamHandle(const TeamHandle&) = delete;
  TeamHandle& operator=(const TeamHandle&) = delete;
  // Requests end before their team. Buffers that other ranks may still write to are freed after the team, whose end
  // polls once more.
  ~TeamHandle() {
    plans.clear();
    for (GivenUp& one : given_up) one.request.reset();
    team.reset();
  }

  Context* context = nullptr;
  LoneWindow lone_window;
  std::unique_ptr<Team> team;
  std::list<LeftWindow> shared_window;  // one, or none
  Shape shape;                          // what selection knows of every call on the team
  CostModel model, steady_model;        // the steady one is the same in every run
  Plans plans;                          // of calls that run once
  // Of the runtime itself, given up while another rank could still write to the buffers (Request::overdue).
  struct GivenUp {
    std::unique_ptr<Request> request;
    std::vector<std::byte> buffers;
  };
  std::vector<GivenUp> given_up;

  // BUSY: requests of the program or of the runtime are left, so `call`, which ends the team, must be refused.
  Status may_end(const char* call);
};

class Context {
 public:
  static Result<std::unique_ptr<Context>> create(const ibcoll_bootstrap_t* callbacks);
  ~Context();

  // The lock that every call holds. A thread that waits for a collective releases it as soon as another thread wants
  // it.
  std::unique_lock<std::mutex> enter() noexcept {
    std::unique_lock<std::mutex> guard(lock_, std::try_to_lock);
    if (!guard.owns_lock()) enter_again(guard);
    return guard;
  }
  // Without waiting: it may not have the lock.
  std::unique_lock<std::mutex> try_enter() noexcept { return {lock_, std::try_to_lock}; }
  std::mutex& lock() noexcept { return lock_; }
  bool in_host() const noexcept { return host_.present(); }
  int rank() const noexcept { return bootstrap_->rank(); }
  int size() const noexcept { return bootstrap_->size(); }
  TeamHandle& world() noexcept { return *world_; }
  int teams() const noexcept { return static_cast<int>(teams_.size()); }
  const Config& config() const noexcept { return config_; }
  // Collective: waits for all ranks and closes what is open. Nothing but destruction may follow.
  Status leave(std::unique_lock<std::mutex>& guard);

  // The members of a new team: ranks of its parent, in the new order.
  struct Members {
    std::vector<int> ranks;
    bool same_everywhere = true;  // every rank of the parent gives the same; false: those that it lists do
    Status refusal = {};          // why this rank's list is invalid; the other ranks get it
  };
  // Collective over the parent; nullptr where this rank is not a member. `guard` holds the lock, as for wait().
  Result<TeamHandle*> make_team(TeamHandle& parent, const Members& members, uint64_t epoch,
                                std::unique_lock<std::mutex>& guard);
  // An allgather of equally many bytes from each rank of the parent.
  using Gather = std::function<Status(ConstBytes mine, Bytes all)>;
  static constexpr size_t kOfferBytes = 32;  // that a rank contributes to it for a new team
  // Collective over the members alone, whose job ranks are `jobs`: they are the parent. `self`: this rank's index
  // there.
  Result<TeamHandle*> make_team_of_members(const std::vector<int>& jobs, int self, Status refusal, uint64_t epoch,
                                           const Gather& gather);
  void free_team(TeamHandle& team);
  // Ends what is in flight on the team, on all its ranks.
  void abort(Team& team, const char* why) noexcept;

  // Blocking allgather over a team: `all` holds one `mine.size()` per rank.
  Status exchange(TeamHandle& team, ConstBytes mine, Bytes all, std::unique_lock<std::mutex>& guard);

  // What the call, or else the environment, forces.
  Result<Forced> forced(ibcoll_collective_t collective, const char* algorithm) const;
  // Checks the call of a request that the program will start.
  Result<std::unique_ptr<Request>> make_persistent(TeamHandle& team, const ibcoll_collective_args_t& given);
  // The algorithm for a call and its scheme; the rest of the request comes from `args`.
  Result<std::unique_ptr<Request>> make_request(TeamHandle& team, Args args, const Forced& forced,
                                                ibcoll_scheme_t scheme);
  // A collective of the library itself, whatever algorithm the user has forced: runs it and waits. `buffers` are those
  // of the call, and are kept for it if it does not end.
  Status run_own(TeamHandle& team, Args args, std::vector<std::byte>& buffers, std::unique_lock<std::mutex>& guard,
                 const Forced& forced = {});
  // Checks and starts a call that runs once, from `site`.
  Result<Plan*> start_once(TeamHandle& team, const ibcoll_collective_args_t& given, const void* site);
  // The same, and waits: a blocking call.
  Status run_blocking(TeamHandle& team, const ibcoll_collective_args_t& given, std::unique_lock<std::mutex>& guard,
                      const void* site);
  // What make_request() would select, and why; refuses what that, or check_without_buffers(), refuses.
  Result<std::string> explain(TeamHandle& team, const ibcoll_collective_args_t& given) const;

  // Where the program called from, for a trace; nullptr without one. The public function returns to `returns_to`. To be
  // called before the lock is taken.
  const void* call_site(const void* returns_to) const noexcept {
    return trace_ ? program_call_site(returns_to) : nullptr;
  }
  Status start(Request& request) noexcept;
  // A call of the program, from `site`, which a trace records.
  Status start(Request& request, const void* site) noexcept {
    if (trace_) request.trace(trace_->buffer(), site);
    return start(request);
  }
  // One pass of progress over all teams; returns the number of events handled. Does nothing once leave() has closed
  // everything: a host may call it until its own part of that is done.
  uint64_t progress() noexcept;
  // Messages of complete collectives are queued, and leave only while a thread waits.
  bool needs_polling() const noexcept { return job_.net && job_.net->needs_polling(); }
  // A call of the program returns, the lock is held: what is still queued leaves without another call.
  void drain_later() noexcept {
    if (drainer_) drainer_->start_if_needed();
  }
  // Blocks until the request is complete and nothing is queued, or until `seconds` have passed (TIMEOUT; the request
  // stays in flight). `guard` holds the lock, and holds it again on return.
  Status wait(Request& request, double seconds, std::unique_lock<std::mutex>& guard);
  // A thread is inside of wait(), with or without the lock.
  bool waiting() const noexcept { return waiting_threads_.load(std::memory_order_relaxed) > 0; }
  std::string describe() const { return engine_->describe(); }
  std::string info_json();

  // What body() returns; where memory is short the team fails, and this is its refusal: the other ranks are in the
  // call, or will be.
  template <typename Body>
  auto or_fail(TeamHandle& team, Body body) -> decltype(body()) {
    try {
      return body();
    } catch (const std::bad_alloc&) {
      team.team->fail(error(IBCOLL_ERR_NO_MEMORY, "rank {}: memory for a collective was refused", rank()));
      spread_failure(*team.team);
      return team.team->refusal();
    }
  }

 private:
  Context() = default;
  void after_a_pass() noexcept;
  void answer() noexcept;
  bool goes_without_messages() noexcept;
  void check() noexcept;
  void enter_again(std::unique_lock<std::mutex>& guard) noexcept;
  void let_others_in(std::unique_lock<std::mutex>& guard) noexcept;
  class Waiter;  // of wait(), for WaitLoop
  Status open(const ibcoll_bootstrap_t* callbacks);
  Status read_settings();
  void build_engine();
  Status make_engine();
  void let_host_decide_deadlines() noexcept;
  Status connect();
  Status run_own_barrier(std::unique_lock<std::mutex>& guard);
  void read_tuning_file();
  Status share_tuning();
  // Collective over the parent, whose ranks are `parent_jobs`; `self`: rank of the parent. NULL: not a member.
  Result<std::unique_ptr<TeamHandle>> form_team(uint64_t epoch, const Members& members,
                                                const std::vector<int>& parent_jobs, int self, const Gather& gather);
  // nullptr where this rank is not a member.
  Result<TeamHandle*> keep_team(Result<std::unique_ptr<TeamHandle>> made);
  // All of a team but its window in the node's memory. Throws std::bad_alloc.
  std::unique_ptr<TeamHandle> draft_team(uint64_t epoch, std::vector<int> jobs, int team_rank);
  // Takes no memory but for errors. `offset`: of the window, kNoWindow: none.
  Status complete_team(TeamHandle& team, uint64_t offset, bool may_copy);
  void make_room_for_team();
  Status allocate_window(uint64_t tag, int locals, uint64_t& offset);
  void leave_unmade_window(TeamHandle& team, uint64_t offset);
  void leave_window(std::list<LeftWindow> window, bool failed) noexcept;
  void give_back_windows(size_t most) noexcept;
  void write_trace() noexcept;
  Status allocate_lone_window(LoneWindow& window) const;
  void spread_failure(Team& team) noexcept;
  Result<Plan*> find_or_make_plan(TeamHandle& team, const ibcoll_collective_args_t& given, Plan::Use use);
  Result<Plan*> take_plan(TeamHandle& team, const ibcoll_collective_args_t& given, Plan::Use use);
  // One of `all`, the candidates for the call: by the tuning file, or else the first.
  struct Chosen {
    const Candidate* candidate;
    const Tuning::Entry* entry;  // nullptr: the file has none
  };
  Chosen choose(const TeamHandle& team, const Args& args, ibcoll_scheme_t scheme, const Shape& shape,
                const std::vector<Candidate>& all) const;
  const CostModel* steady_model_for(const TeamHandle& team, const Args& args) const noexcept;
  ibcoll_scheme_t scheme_of(ibcoll_scheme_t scheme) const noexcept;
  CostModel model_of(const Shape& team, bool steady) const;
  void fill_models(TeamHandle& team) const;

  ForkWatch fork_watch_;
  std::mutex lock_;
  std::atomic<int> wanting_{0};  // threads that wait for the lock
  Config config_;
  Host host_;
  std::unique_ptr<Bootstrap> bootstrap_;
  Job job_;
  uint64_t area_bytes_ = 0;
  uint32_t last_number_ = 0;  // of a team, here or on a rank that has formed one with this rank
  ibcoll_scheme_t default_scheme_ = IBCOLL_SCHEME_AUTO;
  Overlap overlap_ = Overlap::kRefused;      // of receive blocks
  bool deterministic_ = false;               // reductions give the same bits in every run
  Tuning::Identity identity_;                // of this job, on rank 0
  std::string tuning_path_;                  // on rank 0; empty: nothing is read
  std::string tuning_state_;                 // on rank 0: what was found there
  std::string tuning_text_;                  // on rank 0, until the others have it
  uint64_t tuning_bytes_ = 0;                // of that text, on all ranks
  Tuning tuning_;                            // what was read, the same on all ranks
  std::array<Forced, kCollectives> forced_;  // by IBCOLL_<COLLECTIVE>
  std::unique_ptr<WaitStrategy> waiting_;
  std::unique_ptr<Doorbell> doorbell_;  // nullptr: each rank has a core, or this one is alone on its node
  std::unique_ptr<TraceFile> trace_;    // nullptr: not traced
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<EndedRanks> ended_ranks_;
  std::unique_ptr<Drainer> drainer_;    // nullptr: no network
  std::unique_ptr<Answerer> answerer_;  // nullptr: not in host mode, where deadlines end what waits for ever
  std::unique_ptr<TeamHandle> world_;
  std::vector<std::unique_ptr<TeamHandle>> teams_;
  std::list<LeftWindow> left_windows_;
  std::vector<std::byte> parted_;  // for the exchange that ends the job
  uint32_t passes_ = 0;            // of progress, for after_a_pass()
  uint32_t without_messages_ = 0;  // collectives that were complete without a pass of progress
  Time checked_at_ = 0;
  std::atomic<int> waiting_threads_{0};
};

}  // namespace ibcoll
