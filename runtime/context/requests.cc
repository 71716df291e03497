// SPDX-License-Identifier: BSD-3-Clause
// Which algorithm a call gets, and how calls move forward.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cmath>

#include "runtime/collectives/framework/arguments.h"
#include "runtime/context/context.h"
#include "runtime/context/signal_report.h"
#include "runtime/machine/wait_loop.h"
#include "runtime/transport/cost_constants.h"

namespace ibcoll {
namespace {

constexpr uint32_t kPassesPerClock = 64;     // passes of progress for one look at the clock
constexpr uint32_t kCallsPerPass = 16;       // where collectives complete without one
constexpr int kHandOverYields = 1000;        // where nobody else wants the core, a third of a millisecond
constexpr Time kBetweenChecks = 10'000'000;  // of peers, stalls and deadlines, whatever else moves

}  // namespace

// `steady`: from nothing that was timed.
CostModel Context::model_of(const Shape& team, bool steady) const {
  CostModel m;
  const MemoryModel memory = steady ? MemoryModel{} : job_.memory_model;
  if (memory.copy_us_per_byte > 0) m.copy_us = memory.copy_us_per_byte;
  m.cached_copy_us = std::min(m.cached_copy_us, m.copy_us);
  m.combine_us = steady ? m.cached_copy_us : std::max(m.cached_copy_us, job_.combine_us_per_byte);
  m.streamed_copy_us = memory.streamed_copy_us_per_byte > 0 ? memory.streamed_copy_us_per_byte : m.copy_us;
  m.own_cache_bytes = job_.own_cache_bytes;
  if (memory.read_us_per_byte > 0) m.read_us = memory.read_us, m.read_us_per_byte = memory.read_us_per_byte;
  m.cache_bytes = job_.cache_bytes;
  if (team.nodes > 1 || job_.shm) {
    const LinkModel link = team.nodes == 1 ? job_.shm->model() : steady ? job_.steady_net_model : job_.net_model;
    m.alpha_us = link.alpha_us;
    m.cpu_us = link.cpu_us;
    m.by_ranks = link.by_ranks;
    m.moves_meanwhile = team.nodes > 1 && !link.by_ranks;
    double beta = link.beta_us_per_byte;
    if (team.nodes == 1) beta = 2 * m.copy_us;
    if (team.single_copy) {
      // A message beyond the eager limit is a single-copy write, which is no cheaper per byte than two copies: the
      // lines that its receiver has read must be taken from the other core first. (Small messages do not decide on a
      // node.)
      m.cpu_us += m.read_us / 2;
      beta = std::max(beta, m.read_us_per_byte);
    }
    // Ranks that share a core also share the time that it has for moving bytes.
    m.beta_us = beta * job_.ranks_per_core;
  }
  m.sharing = job_.ranks_per_core;
  m.yield_us = cost::kSliceUs * (job_.ranks_per_core - 1);
  return m;
}

void Context::fill_models(TeamHandle& team) const {
  team.model = model_of(team.shape, false);
  team.steady_model = model_of(team.shape, true);
}

Result<Forced> Context::forced(ibcoll_collective_t collective, const char* algorithm) const {
  const bool known = find_collective(collective) != nullptr;
  if (!known) return Forced{};
  if (!algorithm || !*algorithm) return forced_[collective];
  Result<std::vector<ForcedEntry>> entries = parse_forced(collective, algorithm, "the call", IBCOLL_ERR_NOT_APPLICABLE);
  if (!entries.ok()) return entries.status();
  return Forced{std::move(entries.value()), "the call"};
}

ibcoll_scheme_t Context::scheme_of(ibcoll_scheme_t scheme) const noexcept {
  return scheme == IBCOLL_SCHEME_AUTO ? default_scheme_ : scheme;
}

Result<std::unique_ptr<Request>> Context::make_request(TeamHandle& team, Args args, const Forced& forced,
                                                       ibcoll_scheme_t wanted) {
  const ibcoll_scheme_t scheme = scheme_of(wanted);
  args.fixed_order = deterministic_;
  const Shape shape = shape_of(team.shape, args);
  const Result<std::vector<Candidate>> all =
      candidates(args.collective, shape, team.model, forced, steady_model_for(team, args));
  if (!all.ok()) return all.status();
  const Choice& choice = choose(team, args, scheme, shape, all.value()).candidate->choice;
  const uint32_t signature = call_signature(args, choice.name(), scheme, team.team->size());
  auto request = std::make_unique<Request>(*team.team, args, choice, scheme, signature);
  request->hold_counts();
  return request;
}

Result<std::unique_ptr<Request>> Context::make_persistent(TeamHandle& team, const ibcoll_collective_args_t& given) {
  if (team.team->refuses()) return team.team->refusal();
  const Result<Args> args = check_arguments(given, team.team->rank(), team.team->size(), overlap_);
  if (!args.ok()) return args.status();
  const Result<Forced> wanted = forced(given.collective, given.algorithm);
  if (!wanted.ok()) return wanted.status();
  return make_request(team, args.value(), wanted.value(), given.scheme);
}

// What was timed at start differs from run to run, and the algorithm decides in which order operands are combined.
const CostModel* Context::steady_model_for(const TeamHandle& team, const Args& args) const noexcept {
  return deterministic_ && args.reduction.op && !args.reduction.exact() ? &team.steady_model : nullptr;
}

Status TeamHandle::may_end(const char* call) {
  plans.reclaim();
  const auto kept = static_cast<int>(given_up.size());
  const int own = plans.size() - plans.count(Plan::Use::kNonblocking) + kept;
  if (team->requests() > own)
    return error(IBCOLL_ERR_BUSY, "{}: {} requests exist; free them first", call, team->requests() - own);
  int in_flight = plans.count(Plan::Use::kBlocking) + plans.count(Plan::Use::kGivenUp);
  for (const GivenUp& one : given_up) in_flight += one.request->in_flight();
  if (in_flight > 0)
    return error(
        IBCOLL_ERR_BUSY,
        "{}: {} blocking calls are in flight still, in other threads, or given up while a peer may yet write to "
        "their buffers; let them end first (ibcoll_progress)",
        call, in_flight);
  return {};
}

// ---------------------------------------------------------------- calls that run once

// After a failure: this rank may not wait any more, but other ranks may wait for it.
void Context::spread_failure(Team& team) noexcept {
  constexpr int kMostPasses = 2 * TeamFailure::kMostTries;
  for (int passes = 0; passes < kMostPasses && team.refuses() && !team.failure_is_notified(); ++passes)
    engine_->progress();
  drain_later();
}

void Context::abort(Team& team, const char* why) noexcept {
  team.abort(error(IBCOLL_ERR_MISMATCH, "rank {}: {}", team.rank(), why));
  spread_failure(team);
}

Result<Plan*> Context::take_plan(TeamHandle& team, const ibcoll_collective_args_t& given, Plan::Use use) {
  if (Plan* const plan = team.team->refuses() ? nullptr : team.plans.repeat(given, use)) return plan;
  return or_fail(team, [&] { return find_or_make_plan(team, given, use); });
}

Result<Plan*> Context::find_or_make_plan(TeamHandle& team, const ibcoll_collective_args_t& given, Plan::Use use) {
  if (team.team->refuses()) return team.team->refusal();
  if (team.plans.count(Plan::Use::kGivenUp) > 0) team.plans.reclaim();
  Reaches reaches;
  const Result<Args> args = check_arguments(given, team.team->rank(), team.team->size(), overlap_, &reaches);
  if (!args.ok()) return args.status();
  const ibcoll_scheme_t scheme = scheme_of(given.scheme);
  const PlanKey key(args.value(), scheme, team.team->size());
  const bool demands = given.algorithm && *given.algorithm;
  const Plan* like = nullptr;
  if (!demands) {
    if (Plan* const plan = team.plans.take(key, args.value(), use, like)) {
      plan->request->bind(args.value());
      team.plans.remember(*plan, given, reaches);
      return plan;
    }
  }
  auto plan = std::make_unique<Plan>(key);
  plan->team = &team;
  plan->kept = !demands;
  if (like) {  // it is in flight
    Request& request = *like->request;
    plan->request = std::make_unique<Request>(*team.team, args.value(), request.choice(), scheme, request.signature());
    plan->request->hold_counts();
  } else {
    const Result<Forced> wanted = forced(given.collective, given.algorithm);
    if (!wanted.ok()) return wanted.status();
    Result<std::unique_ptr<Request>> made = make_request(team, args.value(), wanted.value(), scheme);
    if (!made.ok()) return made.status();
    plan->request = std::move(*made);
  }
  Plan* const added = team.plans.add(std::move(plan), use);
  if (!demands) team.plans.remember(*added, given, reaches);
  return added;
}

Result<Plan*> Context::start_once(TeamHandle& team, const ibcoll_collective_args_t& given, const void* site) {
  Result<Plan*> plan = take_plan(team, given, Plan::Use::kNonblocking);
  if (!plan.ok()) return plan;
  const Status status = start(*(*plan)->request, site);
  if (status.ok()) return plan;
  team.plans.give_back(**plan);
  return status;
}

Status Context::run_blocking(TeamHandle& team, const ibcoll_collective_args_t& given,
                             std::unique_lock<std::mutex>& guard, const void* site) {
  const Result<Plan*> taken = take_plan(team, given, Plan::Use::kBlocking);
  if (!taken.ok()) return taken.status();
  const struct AtReturn {
    Plans& plans;
    Plan& plan;
    ~AtReturn() {
      if (plan.request->in_flight())
        plans.give_up(plan);
      else
        plans.give_back(plan);
    }
  } at_return{team.plans, *taken.value()};
  Request& request = *taken.value()->request;
  if (Status status = start(request, site); !status.ok()) return status;
  return wait(request, INFINITY, guard);
}

Status Context::run_own(TeamHandle& team, Args args, std::vector<std::byte>& buffers,
                        std::unique_lock<std::mutex>& guard, const Forced& forced) {
  args.internal = true;
  Result<std::unique_ptr<Request>> request = or_fail(team, [&] {
    team.given_up.reserve(team.given_up.size() + 1);
    return make_request(team, args, forced, IBCOLL_SCHEME_AUTO);
  });
  if (!request.ok()) return request.status();
  if (Status status = start(**request); !status.ok()) return status;
  Status status = wait(**request, INFINITY, guard);
  if ((*request)->in_flight()) team.given_up.push_back({std::move(*request), std::move(buffers)});
  return status;
}

Result<std::string> Context::explain(TeamHandle& team, const ibcoll_collective_args_t& given) const {
  if (team.team->refuses()) return team.team->refusal();
  Result<Args> args = check_without_buffers(given, team.team->rank(), team.team->size());
  if (!args.ok()) return args.status();
  Result<Forced> wanted = forced(given.collective, given.algorithm);
  if (!wanted.ok()) return wanted.status();
  const Shape shape = shape_of(team.shape, *args);
  Result<std::vector<Candidate>> all =
      candidates(given.collective, shape, team.model, *wanted, steady_model_for(team, *args));
  if (!all.ok()) return all.status();
  Json decision = ibcoll::explain(given.collective, shape, team.model, *wanted, *all);
  const ibcoll_scheme_t scheme = scheme_of(given.scheme);
  if (const Chosen chosen = choose(team, *args, scheme, shape, *all); chosen.entry) {
    decision.set("algorithm", chosen.candidate->choice.name());
    decision.set("reason", fmt::format("read from the tuning file, timed in {} calls", chosen.entry->trials));
  }
  if (has_class(*args, shape))
    decision.set("class", Tuning::key(layout_of(team.shape), class_of(*args, scheme, shape)));
  return decision.dump();
}

// ---------------------------------------------------------------- progress

uint64_t Context::progress() noexcept {
  if (!engine_) return 0;
  const uint64_t before = engine_->events();
  engine_->progress();
  after_a_pass();
  return engine_->events() - before;
}

// What is due from time to time. The clock decides, as a host program may poll rarely, and other teams may keep a
// waiting thread busy.
void Context::after_a_pass() noexcept {
  if (report_asked()) [[unlikely]]
    report_if_asked(*this);
  const bool suspects = !world_->team->failure().ok() && !world_->team->refuses();
  if (suspects) [[unlikely]]
    ended_ranks_->poll();  // all ranks are about to be notified of the failure: the launcher may know its cause
  if (++passes_ % kPassesPerClock != 0) return;
  const Time now = engine_->now();
  if (now - checked_at_ < kBetweenChecks) return;
  checked_at_ = now;
  check();
}

// Checks for dead peers, stalls and deadlines, by system calls: too slow for every pass.
void Context::check() noexcept {
  ended_ranks_->poll();
  engine_->check();
}

// The last rank that comes to a collective finds all that it needs in the node window. If that is always the same rank,
// it never waits, and the others find theirs there soon. But other collectives, and ranks that fail, need a pass over
// the messages from time to time.
bool Context::goes_without_messages() noexcept { return ++without_messages_ % kCallsPerPass != 0; }

Status Context::start(Request& request) noexcept {
  Status status = request.start();
  if (!status.ok()) spread_failure(request.team());
  if (!request.in_flight() && !goes_without_messages()) progress();
  return status;
}

void Context::enter_again(std::unique_lock<std::mutex>& guard) noexcept {
  if (guard.try_lock()) return;
  wanting_.fetch_add(1, std::memory_order_relaxed);
  guard.lock();
  wanting_.fetch_sub(1, std::memory_order_relaxed);
}

// The first thread that asks gets the mutex: this one again, before another one has woken up. So it waits until the
// others have taken it.
void Context::let_others_in(std::unique_lock<std::mutex>& guard) noexcept {
  guard.unlock();
  for (int i = 0; i < kHandOverYields && wanting_.load(std::memory_order_relaxed) > 0; ++i) ::sched_yield();
  enter_again(guard);
}

// A request that a thread waits for. Done: it is complete, and no message is queued.
class Context::Waiter {
 public:
  Waiter(Context& context, Request& request, std::unique_lock<std::mutex>& guard) noexcept
      : context_(context),
        request_(request),
        guard_(guard),
        looks_at_memory_(context.waiting_->spins() > 1 ? kLooksAtMemory : 0) {
    count_thread(1);
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  ~Waiter() { count_thread(-1); }

  // A rank with a core of its own polls shared memory several times for each pass over the messages: what it waits for
  // there arrives in less time than such a pass takes.
  bool look() noexcept {
    Engine& engine = *context_.engine_;
    bool moved = false;
    for (uint32_t i = 0; i < looks_at_memory_ && !moved && engine.waits_for_memory(); ++i)
      moved = engine.look_at_memory();
    if (moved && done() && context_.goes_without_messages()) return true;
    return engine.progress() || moved;
  }
  bool done() const noexcept { return !request_.in_flight() && !context_.needs_polling(); }
  bool gave_way() noexcept {
    if (context_.wanting_.load(std::memory_order_relaxed) == 0) return false;
    context_.let_others_in(guard_);
    return true;
  }
  bool gives_up() noexcept {
    overdue_ = request_.overdue();
    return !overdue_.ok();
  }
  Status overdue() noexcept { return std::move(overdue_); }
  template <typename F>
  bool unlocked(F f) noexcept {
    guard_.unlock();
    const bool result = f();
    context_.enter_again(guard_);
    return result;
  }
  void rested(bool long_wait) noexcept {
    if (long_wait) context_.check();
    context_.after_a_pass();
  }
  bool has_host() const noexcept { return context_.in_host(); }
  bool advance_host() noexcept {
    return unlocked([this] { return context_.host_.advance(); });
  }
  Doorbell* doorbell() noexcept { return context_.doorbell_.get(); }
  bool awaits_leaders() noexcept { return context_.engine_->awaits_leaders(); }
  // A thread sleeps until it is woken only if no other thread waits: another one might complete what it waits for
  // without waking it. Nor do queued messages wake it as they leave.
  int awaited_bell() noexcept {
    const bool alone = context_.waiting_threads_.load(std::memory_order_relaxed) == 1;
    return alone && !context_.needs_polling() ? context_.engine_->awaited_bell() : Doorbell::kNoBell;
  }

 private:
  // Changes under the context's lock only, so that no atomic read-modify-write is needed.
  void count_thread(int change) noexcept {
    std::atomic<int>& count = context_.waiting_threads_;
    count.store(count.load(std::memory_order_relaxed) + change, std::memory_order_relaxed);
  }

  static constexpr uint32_t kLooksAtMemory = 8;

  Context& context_;
  Request& request_;
  std::unique_lock<std::mutex>& guard_;
  const uint32_t looks_at_memory_;  // for each pass over the messages
  Status overdue_;
};

Status Context::wait(Request& request, double seconds, std::unique_lock<std::mutex>& guard) {
  const struct AtReturn {
    Context& context;
    ~AtReturn() { context.drain_later(); }
  } at_return{*this};
  if (!request.in_flight() && !needs_polling()) return request.status();
  Waiter waiter(*this, request, guard);
  WaitLoop loop(*waiting_, Deadline::after_seconds(std::max(0.0, seconds)));
  const WaitLoop::End end = loop.run(waiter);
  if (end == WaitLoop::End::kGivenUp) return waiter.overdue();
  if (end == WaitLoop::End::kDone) return request.status();
  after_a_pass();  // a host program may wait for no time at all, many times
  if (!request.in_flight()) return request.status();
  return error(IBCOLL_ERR_TIMEOUT, "rank {}: {} is not complete after {} s: it {}", request.team().rank(),
               request.call(), seconds, request.exchange().describe_wait());
}

}  // namespace ibcoll
