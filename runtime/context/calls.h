// SPDX-License-Identifier: BSD-3-Clause
// Calls of collectives on a team: from the arguments to a request that runs. The context's lock is held around every
// call.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/context/context_lock.h"
#include "runtime/context/plans.h"
#include "runtime/context/progress.h"
#include "runtime/context/selection.h"
#include "runtime/context/team_handle.h"
#include "runtime/context/waiting.h"

namespace ibcoll {

class Calls {
 public:
  // All outlive it.
  Calls(const Selection& selection, Progress& progress, Waiting& waiting) noexcept
      : selection_(selection), progress_(progress), waiting_(waiting) {}
  // Calls of the program are added to it from now on.
  void trace_to(TraceBuffer& buffer) noexcept { trace_ = &buffer; }

  // ---- of the program. `site`: where it called from, for a trace. `waits`: the call blocks.

  // Checks the call of a request that is started many times.
  Result<std::unique_ptr<Request>> make_persistent(TeamHandle& team, const ibcoll_collective_args_t& given);
  Status start(Request& request, const void* site, bool waits = false) noexcept {
    if (trace_) request.trace().enable(*trace_, site, waits);
    return progress_.start(request);
  }
  // Before the program waits for a request that it has started.
  void begin_wait(Request& request) const noexcept {
    if (trace_) request.trace().begin_wait();
  }
  // Checks and starts a call that runs once.
  Result<Plan*> start_once(TeamHandle& team, const ibcoll_collective_args_t& given, const void* site);
  // A blocking call is try_short(), and where that has not done it, run_blocking(), without letting go of the lock.
  struct ShortCall {
    Team::Short how = Team::Short::kNo;
    Plan* plan = nullptr;  // of an equal call before, with the buffers of this one
  };
  // Runs the call if it repeats an earlier one, is one step or one exchange, and what it awaits is there.
  [[gnu::always_inline]] ShortCall try_short(TeamHandle& team, const ibcoll_collective_args_t& given,
                                             ContextLock::Guard& guard) noexcept {
    Plan* const plan = team.plans.find_repeated(given);
    if (!plan || !plan->request->may_be_short() || trace_ || progress_.needs_polling()) [[unlikely]]
      return {Team::Short::kNo, plan};
    const Team::Short how = team.team->run_short(*plan->request, waiting_.looks_of_a_short_call());
    if (how != Team::Short::kDone) [[unlikely]]
      return {how, plan};
    team.plans.touch(*plan);
    progress_.ended_without_a_pass();
    waiting_.give_way(guard);
    return {how, plan};
  }
  // Checks and starts a call, or goes on with one that was handed over, and waits.
  Status run_blocking(TeamHandle& team, const ibcoll_collective_args_t& given, const ShortCall& begun,
                      ContextLock::Guard& guard, const void* site);
  // Returns what selection would choose, and why; refuses what the call, or check_without_buffers(), refuses.
  Result<std::string> explain(TeamHandle& team, const ibcoll_collective_args_t& given) const;

  // ---- of the runtime itself

  // Runs a collective, whatever algorithm the user has forced, and waits. `buffers` are those of the call, and are kept
  // for it if it does not end.
  Status run_own(TeamHandle& team, Args args, std::vector<std::byte>& buffers, ContextLock::Guard& guard,
                 const Forced& forced = {});
  // Blocking allgather over a team: `all` holds one `mine.size()` per rank.
  Status exchange(TeamHandle& team, ConstBytes mine, Bytes all, ContextLock::Guard& guard);

 private:
  Result<std::unique_ptr<Request>> make_request(TeamHandle& team, Args args, const Forced& forced,
                                                ibcoll_scheme_t scheme);
  // Takes the plan `repeated`, or else another one.
  Result<Plan*> take_plan(TeamHandle& team, const ibcoll_collective_args_t& given, Plan::Use use, Plan* repeated);
  Result<Plan*> find_or_make_plan(TeamHandle& team, const ibcoll_collective_args_t& given, Plan::Use use);

  const Selection& selection_;
  Progress& progress_;
  Waiting& waiting_;
  TraceBuffer* trace_ = nullptr;  // nullptr: not traced
};

}  // namespace ibcoll
