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

  // ---- of the program. `site`: where it called from, for a trace.

  // Checks the call of a request that is started many times.
  Result<std::unique_ptr<Request>> make_persistent(TeamHandle& team, const ibcoll_collective_args_t& given);
  Status start(Request& request, const void* site) noexcept {
    if (trace_) request.trace(*trace_, site);
    return progress_.start(request);
  }
  // Checks and starts a call that runs once.
  Result<Plan*> start_once(TeamHandle& team, const ibcoll_collective_args_t& given, const void* site);
  // The same, and waits: a blocking call.
  Status run_blocking(TeamHandle& team, const ibcoll_collective_args_t& given, ContextLock::Guard& guard,
                      const void* site);
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
  // The plan of an equal call before, with the buffers of this one; nullptr: there is none, or the team has failed.
  static Plan* find_repeated(TeamHandle& team, const ibcoll_collective_args_t& given) noexcept {
    return team.team->refuses() ? nullptr : team.plans.find_repeated(given);
  }
  // Takes the plan `repeated`, or else another one.
  Result<Plan*> take_plan(TeamHandle& team, const ibcoll_collective_args_t& given, Plan::Use use, Plan* repeated);
  Result<Plan*> find_or_make_plan(TeamHandle& team, const ibcoll_collective_args_t& given, Plan::Use use);

  const Selection& selection_;
  Progress& progress_;
  Waiting& waiting_;
  TraceBuffer* trace_ = nullptr;  // nullptr: not traced
};

}  // namespace ibcoll
