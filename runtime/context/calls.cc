// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/calls.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "runtime/collectives/framework/arguments.h"

namespace ibcoll {
namespace {

// The plan of a blocking call, until that returns.
struct PlanInUse {
  Plans& plans;
  Plan& plan;
  ~PlanInUse() {
    if (plan.request->in_flight())
      plans.give_up(plan);
    else
      plans.give_back(plan);
  }
};

}  // namespace

// ---------------------------------------------------------------- of the program

Result<std::unique_ptr<Request>> Calls::make_request(TeamHandle& team, Args args, const Forced& forced,
                                                     ibcoll_scheme_t scheme) {
  const Result<Choice> choice = selection_.choose(team.profile, args, forced, scheme);
  if (!choice.ok()) return choice.status();
  const uint32_t signature = call_signature(args, choice.value().name(), scheme, team.team->size());
  auto request = std::make_unique<Request>(*team.team, args, choice.value(), scheme, signature);
  request->hold_counts();
  return request;
}

Result<std::unique_ptr<Request>> Calls::make_persistent(TeamHandle& team, const ibcoll_collective_args_t& given) {
  if (team.team->refuses()) return team.team->refusal();
  const Result<Args> args = check_arguments(given, team.team->rank(), team.team->size(), selection_.overlap());
  if (!args.ok()) return args.status();
  const Result<Forced> wanted = selection_.forced(given.collective, given.algorithm);
  if (!wanted.ok()) return wanted.status();
  const ibcoll_scheme_t scheme = selection_.scheme_of(given.scheme);
  Result<std::unique_ptr<Request>> made = make_request(team, args.value(), wanted.value(), scheme);
  if (made.ok()) made.value()->keep_buffers();
  return made;
}

Result<Plan*> Calls::take_plan(TeamHandle& team, const ibcoll_collective_args_t& given, Plan::Use use, Plan* repeated) {
  if (!repeated) return progress_.or_fail(*team.team, [&] { return find_or_make_plan(team, given, use); });
  team.plans.use(*repeated, use);
  return repeated;
}

Result<Plan*> Calls::find_or_make_plan(TeamHandle& team, const ibcoll_collective_args_t& given, Plan::Use use) {
  if (team.team->refuses()) return team.team->refusal();
  if (team.plans.count(Plan::Use::kGivenUp) > 0) team.plans.reclaim();
  Reaches reaches;
  const Result<Args> args =
      check_arguments(given, team.team->rank(), team.team->size(), selection_.overlap(), &reaches);
  if (!args.ok()) return args.status();
  const ibcoll_scheme_t scheme = selection_.scheme_of(given.scheme);
  const PlanKey key(args.value(), scheme, team.team->size());
  const bool demands = given.algorithm && *given.algorithm;
  const Plan* like = nullptr;
  if (!demands) {
    if (Plan* const plan = team.plans.take(key, args.value(), use, like)) {
      try {
        plan->request->bind(args.value());
      } catch (const std::bad_alloc&) {
        team.plans.give_back(*plan);
        throw;
      }
      team.plans.remember(*plan, given, reaches);
      return plan;
    }
  }
  auto plan = std::make_unique<Plan>(key);
  plan->team = &team;
  plan->kept = !demands;
  if (like) {  // it is in flight
    Request& request = *like->request;
    plan->request =
        std::make_unique<Request>(*team.team, args.value(), request.choice(), scheme, request.record().signature);
    plan->request->hold_counts();
  } else {
    const Result<Forced> wanted = selection_.forced(given.collective, given.algorithm);
    if (!wanted.ok()) return wanted.status();
    Result<std::unique_ptr<Request>> made = make_request(team, args.value(), wanted.value(), scheme);
    if (!made.ok()) return made.status();
    plan->request = std::move(*made);
  }
  Plan* const added = team.plans.add(std::move(plan), use);
  if (!demands) team.plans.remember(*added, given, reaches);
  return added;
}

Result<Plan*> Calls::start_once(TeamHandle& team, const ibcoll_collective_args_t& given, const void* site) {
  Result<Plan*> plan = take_plan(team, given, Plan::Use::kNonblocking, team.plans.find_repeated(given));
  if (!plan.ok()) return plan;
  const Status status = start(*(*plan)->request, site);
  if (status.ok()) return plan;
  team.plans.give_back(**plan);
  return status;
}

Status Calls::run_blocking(TeamHandle& team, const ibcoll_collective_args_t& given, const ShortCall& begun,
                           ContextLock::Guard& guard, const void* site) {
  const Result<Plan*> plan = take_plan(team, given, Plan::Use::kBlocking, begun.plan);
  if (!plan.ok()) return plan.status();
  const PlanInUse in_use{team.plans, *plan.value()};
  if (begun.how == Team::Short::kNo)
    if (Status status = start(*plan.value()->request, site, true); !status.ok()) return status;
  return waiting_.wait(*plan.value()->request, INFINITY, guard);
}

Result<std::string> Calls::explain(TeamHandle& team, const ibcoll_collective_args_t& given) const {
  if (team.team->refuses()) return team.team->refusal();
  const Result<Args> args = check_without_buffers(given, team.team->rank(), team.team->size());
  if (!args.ok()) return args.status();
  const Result<Forced> wanted = selection_.forced(given.collective, given.algorithm);
  if (!wanted.ok()) return wanted.status();
  return selection_.explain(team.profile, args.value(), wanted.value(), selection_.scheme_of(given.scheme));
}

// ---------------------------------------------------------------- of the runtime itself

Status Calls::run_own(TeamHandle& team, Args args, std::vector<std::byte>& buffers, ContextLock::Guard& guard,
                      const Forced& forced) {
  args.internal = true;
  Result<std::unique_ptr<Request>> request = progress_.or_fail(*team.team, [&] {
    team.given_up.reserve(team.given_up.size() + 1);
    return make_request(team, args, forced, selection_.scheme_of(IBCOLL_SCHEME_AUTO));
  });
  if (!request.ok()) return request.status();
  if (Status status = progress_.start(**request); !status.ok()) return status;
  Status status = waiting_.wait(**request, INFINITY, guard);
  if ((*request)->in_flight()) team.given_up.push_back({std::move(*request), std::move(buffers)});
  return status;
}

Status Calls::exchange(TeamHandle& team, ConstBytes mine, Bytes all, ContextLock::Guard& guard) {
  std::vector<std::byte> buffers;
  const Status room = progress_.or_fail(*team.team, [&]() -> Status {
    buffers.resize(mine.size() + all.size());
    return {};
  });
  if (!room.ok()) return room;
  std::copy(mine.begin(), mine.end(), buffers.begin());
  Args args;
  args.collective = IBCOLL_ALLGATHER;
  args.bytes = mine.size();
  args.send.base = buffers.data();
  args.recv = {buffers.data() + mine.size(), mine.size(), nullptr, nullptr};
  Status status = run_own(team, args, buffers, guard);
  if (status.ok()) std::copy(buffers.begin() + static_cast<std::ptrdiff_t>(mine.size()), buffers.end(), all.begin());
  return status;
}

}  // namespace ibcoll
