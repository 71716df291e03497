// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "runtime/arguments.h"
#include "runtime/collectives/registry.h"
#include "runtime/log.h"
#include "runtime/signal_report.h"

namespace ibcoll {
namespace {

constexpr uint64_t kNoWindow = ~uint64_t{0};
constexpr uint32_t kIdleRoundsPerCheck = 1 << 16;  // of ibcoll_progress and ibcoll_test

// In front of a node window: the last rank of the node that frees the team gives the memory back.
struct alignas(64) WindowUsers {
  std::atomic<int32_t> count;
};

// What the leader of each node says of the window that it made.
struct WindowOffer {
  uint64_t offset = kNoWindow;
  int32_t code = IBCOLL_OK;
  int32_t unused = 0;
};

Placement placement_of(const std::vector<int>& jobs, const std::vector<int>& job_nodes) {
  Placement placement;
  placement.jobs = jobs;
  std::vector<int> number(job_nodes.size(), -1);
  placement.node_count = 0;
  for (const int job : jobs) {
    int& n = number[static_cast<size_t>(job_nodes[static_cast<size_t>(job)])];
    if (n < 0) n = placement.node_count++;
    placement.nodes.push_back(n);
  }
  return placement;
}

// Team ranks on the node of `rank`.
std::vector<int> locals_of(const Placement& placement, int rank) {
  std::vector<int> locals;
  for (size_t i = 0; i < placement.jobs.size(); ++i)
    if (placement.nodes[i] == placement.nodes[static_cast<size_t>(rank)]) locals.push_back(static_cast<int>(i));
  return locals;
}

}  // namespace

Result<std::unique_ptr<Context>> Context::create(const ibcoll_bootstrap_t* callbacks) {
  std::unique_ptr<Context> context(new Context());
  if (Status status = context->open(callbacks); !status.ok()) return status;
  return context;
}

Context::~Context() {
  world_.reset();
  engine_.reset();
}

Status Context::open(const ibcoll_bootstrap_t* callbacks) {
  Result<Config> config = Config::load();
  if (!config.ok()) return config.status();
  config_ = std::move(*config);
  Result<std::unique_ptr<Bootstrap>> bootstrap = make_bootstrap(callbacks);
  if (!bootstrap.ok()) return bootstrap.status();
  bootstrap_ = std::move(*bootstrap);
  set_log_rank(size() > 1 ? rank() : -1);
  if (rank() == 0) {
    for (const std::string& warning : config_.warnings()) log(LogLevel::kWarning, "{}", warning);
  }
  for (int i = 0; i < IBCOLL_COLLECTIVE_COUNT; ++i) {
    const auto collective = static_cast<ibcoll_collective_t>(i);
    std::string name = fmt::format("IBCOLL_{}", ibcoll_collective_name(collective));
    std::transform(name.begin(), name.end(), name.begin(), [](char c) { return std::toupper(c); });
    const Config::Value& value = config_.value(name);
    if (value.text == "auto") continue;
    if (!find_algorithm(collective, value.text))
      return error(IBCOLL_ERR_CONFIG, "{}={} ({}): there is no such algorithm; ibcoll_info -A lists them", name,
                   value.text, value.origin);
    forced_[i] = value.text;
    forced_origin_[i] = name;
  }
  const std::string& scheme = config_.text("IBCOLL_SCHEME");
  default_scheme_ = scheme == "copy" ? IBCOLL_SCHEME_COPY : scheme == "zero_copy" ? IBCOLL_SCHEME_ZERO_COPY : IBCOLL_SCHEME_AUTO;
  area_bytes_ = config_.bytes("IBCOLL_SHM_SLOT_BYTES") / 64 * 64;
  Result<Job> job = join_job(*bootstrap_, config_);
  if (!job.ok()) return job.status();
  job_ = std::move(*job);
  return make_engine();
}

Status Context::make_engine() {
  waiting_ = std::make_unique<WaitStrategy>(config_.text("IBCOLL_WAIT"), job_.ranks_per_core);
  EngineLimits limits;
  limits.eager_bytes = config_.bytes("IBCOLL_EAGER_BYTES");
  for (const Transport* const t : {static_cast<const Transport*>(job_.shm.get()), static_cast<const Transport*>(job_.net.get())})
    if (t && limits.eager_bytes > t->slot_bytes())
      return error(IBCOLL_ERR_CONFIG, "IBCOLL_EAGER_BYTES={} is more than a landing slot of {} holds ({} bytes)",
                   limits.eager_bytes, t->name(), t->slot_bytes());
  const double timeout = config_.seconds("IBCOLL_TIMEOUT");
  limits.timeout_ns = std::isfinite(timeout) ? static_cast<Time>(timeout * 1e9) : 0;

  std::vector<Transport*> route(static_cast<size_t>(size()), nullptr);
  std::vector<int> all(route.size());
  for (int i = 0; i < size(); ++i) {
    const bool local = job_.nodes[static_cast<size_t>(i)] == job_.nodes[static_cast<size_t>(rank())];
    all[static_cast<size_t>(i)] = i;
    if (i != rank()) route[static_cast<size_t>(i)] = local ? static_cast<Transport*>(job_.shm.get()) : job_.net.get();
  }
  engine_ = std::make_unique<Engine>(rank(), std::move(route), limits);

  Placement placement = placement_of(all, job_.nodes);
  WindowOffer offer;
  const std::vector<int> locals = locals_of(placement, rank());
  Status allocated;
  if (locals.size() > 1 && locals.front() == rank()) {
    allocated = allocate_window(static_cast<int>(locals.size()), offer.offset);
    offer.code = allocated.code();
  }
  std::vector<WindowOffer> offers(static_cast<size_t>(size()));
  if (Status status = bootstrap_->allgather(std::as_bytes(std::span(&offer, 1)), std::as_writable_bytes(std::span(offers)));
      !status.ok())
    return status;
  if (!allocated.ok()) return allocated;
  for (size_t i = 0; i < offers.size(); ++i)
    if (offers[i].code != IBCOLL_OK)
      return error(static_cast<ibcoll_status_t>(offers[i].code), "rank {} has no shared memory for the window of its node", i);
  Result<std::unique_ptr<TeamHandle>> world =
      build_team(1, std::move(placement), rank(), offers[static_cast<size_t>(locals.front())].offset);
  if (!world.ok()) return world.status();
  world_ = std::move(*world);
  return {};
}

// The barrier ends what ranks still wait for from each other; closing the network transport sends what is still in it; and
// the exchange keeps this process alive, for those that watch it, until all are through. After a failure ranks part at once.
Status Context::leave(std::unique_lock<std::mutex>& guard) {
  ibcoll_collective_args_t barrier{};
  barrier.struct_size = sizeof barrier;
  barrier.collective = IBCOLL_BARRIER;
  const bool together = run_blocking(*world_, barrier, guard).ok();
  world_.reset();
  engine_.reset();
  job_.net.reset();
  if (!together) return {};
  const std::byte mine{1};
  std::vector<std::byte> all(static_cast<size_t>(size()));
  return bootstrap_->allgather(std::span(&mine, 1), all);
}

// ---------------------------------------------------------------- teams

uint64_t Context::window_footprint(int locals) const {
  return sizeof(WindowUsers) + NodeWindow::footprint(locals, area_bytes_);
}

Status Context::allocate_window(int locals, uint64_t& offset) {
  Result<uint64_t> made = job_.memory->allocate(window_footprint(locals));
  if (!made.ok()) return made.status();
  offset = *made;
  reinterpret_cast<WindowUsers*>(job_.memory->at(offset))->count.store(locals, std::memory_order_release);
  return {};
}

Result<std::unique_ptr<TeamHandle>> Context::build_team(uint64_t epoch, Placement placement, int team_rank,
                                                        uint64_t window_offset) {
  auto handle = std::make_unique<TeamHandle>();
  handle->context = this;
  const std::vector<int> locals = locals_of(placement, team_rank);
  std::unique_ptr<NodeWindow> window;
  handle->shape.p = static_cast<int>(placement.jobs.size());
  handle->shape.nodes = placement.node_count;
  if (window_offset != kNoWindow) {
    std::vector<int> jobs, shm_locals;
    for (const int i : locals) jobs.push_back(placement.jobs[static_cast<size_t>(i)]);
    for (const int job : jobs) shm_locals.push_back(job_.shm->local(job));
    const auto self = static_cast<int>(std::find(locals.begin(), locals.end(), team_rank) - locals.begin());
    const bool single_copy = job_.shm->all_may_read(shm_locals);
    window = std::make_unique<NodeWindow>(*job_.memory, job_.memory->at(window_offset) + sizeof(WindowUsers), area_bytes_,
                                          std::move(jobs), self, single_copy, job_.ranks_per_core > 1);
    if (placement.one_node()) {
      handle->shape.crowded = job_.ranks_per_core > 1;
      handle->shape.area_bytes = area_bytes_;
      handle->shape.single_copy = single_copy;
    }
    handle->window_offset = window_offset;
    handle->window_bytes = window_footprint(static_cast<int>(locals.size()));
  }
  fill_model(*handle);
  handle->team = std::make_unique<Team>(*engine_, epoch, std::move(placement), team_rank, std::move(window));
  return handle;
}

Result<TeamHandle*> Context::make_team(TeamHandle& parent, const std::vector<int>& ranks, uint64_t epoch,
                                       std::unique_lock<std::mutex>& guard) {
  const Team& from = *parent.team;
  const auto self = std::find(ranks.begin(), ranks.end(), from.rank());
  Placement placement;
  std::vector<int> locals;
  WindowOffer offer;
  Status allocated;
  if (self != ranks.end()) {
    std::vector<int> jobs;
    for (const int r : ranks) jobs.push_back(from.job_rank(r));
    placement = placement_of(jobs, job_.nodes);
    const auto team_rank = static_cast<int>(self - ranks.begin());
    locals = locals_of(placement, team_rank);
    if (locals.size() > 1 && locals.front() == team_rank) {
      allocated = allocate_window(static_cast<int>(locals.size()), offer.offset);
      offer.code = allocated.code();
    }
  }
  std::vector<WindowOffer> offers(static_cast<size_t>(from.size()));
  if (Status status = exchange(parent, std::as_bytes(std::span(&offer, 1)), std::as_writable_bytes(std::span(offers)), guard);
      !status.ok())
    return status;
  if (!allocated.ok()) return allocated;
  for (const WindowOffer& o : offers)
    if (o.code != IBCOLL_OK)
      return error(static_cast<ibcoll_status_t>(o.code), "no shared memory for the node window of a new team; free teams, or "
                   "lower IBCOLL_SHM_SLOT_BYTES");
  if (self == ranks.end()) return static_cast<TeamHandle*>(nullptr);
  const int leader = ranks[static_cast<size_t>(locals.front())];
  Result<std::unique_ptr<TeamHandle>> made =
      build_team(epoch, std::move(placement), static_cast<int>(self - ranks.begin()), offers[static_cast<size_t>(leader)].offset);
  if (!made.ok()) return made.status();
  teams_.push_back(std::move(*made));
  return teams_.back().get();
}

void Context::free_team(TeamHandle& team) {
  const uint64_t offset = team.window_offset, bytes = team.window_bytes;
  std::erase_if(teams_, [&](const auto& handle) { return handle.get() == &team; });
  if (bytes == 0) return;
  auto* const users = reinterpret_cast<WindowUsers*>(job_.memory->at(offset));
  if (users->count.fetch_sub(1, std::memory_order_acq_rel) == 1) job_.memory->release(offset, bytes);
}

Status Context::exchange(TeamHandle& team, ConstBytes mine, Bytes all, std::unique_lock<std::mutex>& guard) {
  Args args;
  args.collective = IBCOLL_ALLGATHER;
  args.send.base = mine.data();
  args.recv = {all.data(), mine.size(), nullptr, nullptr};
  Result<std::unique_ptr<Request>> request = make_request(team, args, nullptr, IBCOLL_SCHEME_AUTO);
  if (!request.ok()) return request.status();
  if (Status status = (*request)->start(); !status.ok()) return status;
  return wait(**request, INFINITY, guard);
}

// ---------------------------------------------------------------- selection

void Context::fill_model(TeamHandle& team) const {
  CostModel& m = team.model;
  const Transport* const slowest = team.shape.nodes > 1 ? job_.net.get() : job_.shm.get();
  if (slowest) {
    const LinkModel link = slowest->model();
    m.alpha_us = link.alpha_us;
    // Where ranks share cores they take turns at moving bytes, too.
    m.beta_us = link.beta_us_per_byte * job_.ranks_per_core;
  }
  m.sharing = job_.ranks_per_core;
  m.turn_us = 1.2 * (job_.ranks_per_core - 1.0);
}

Shape Context::shape_of(const TeamHandle& team, const Args& args, ibcoll_scheme_t scheme) const {
  Shape shape = team.shape;
  const auto p = static_cast<uint64_t>(shape.p);
  shape.scheme = scheme;
  shape.bytes = args.bytes + args.recv.bytes;
  shape.total = args.recv.bytes * p;
  if (args.recv.counts && args.collective == IBCOLL_ALLGATHERV) {
    for (uint64_t i = 0; i < p; ++i) {
      shape.bytes = std::max(shape.bytes, args.recv.counts[i]);
      shape.total += args.recv.counts[i];
    }
  }
  shape.sizes_known = args.collective != IBCOLL_ALLTOALLV;
  if (args.reduction.op) {
    shape.commutative = args.reduction.op->commutative;
    shape.element_bytes = args.reduction.element_bytes();
  }
  return shape;
}

Forced Context::forced(ibcoll_collective_t collective, const char* algorithm) const {
  if (algorithm && *algorithm && std::string_view(algorithm) != "auto") return {algorithm, "the call"};
  return {forced_[collective], forced_origin_[collective]};
}

ibcoll_scheme_t Context::scheme_of(ibcoll_scheme_t scheme) const noexcept {
  return scheme == IBCOLL_SCHEME_AUTO ? default_scheme_ : scheme;
}

Result<std::unique_ptr<Request>> Context::make_request(TeamHandle& team, const Args& args, const char* algorithm,
                                                       ibcoll_scheme_t wanted) {
  const ibcoll_scheme_t scheme = scheme_of(wanted);
  Result<const Algorithm*> selected =
      select(args.collective, shape_of(team, args, scheme), team.model, forced(args.collective, algorithm));
  if (!selected.ok()) return selected.status();
  const uint32_t signature = call_signature(args, (*selected)->name, scheme, team.team->size());
  auto request = std::make_unique<Request>(*team.team, args, **selected, scheme, signature);
  request->hold_counts();
  return request;
}

int TeamHandle::shorthand_requests() const noexcept {
  return static_cast<int>(std::count_if(shorthands.begin(), shorthands.end(), [](const Shorthand& s) { return s.request != nullptr; }));
}

namespace {

// The same call as last time, but for what the count arrays hold now.
bool same_counts(const Args& held, const ibcoll_collective_args_t& given, size_t p) {
  const auto same = [p](const uint64_t* a, const uint64_t* b) {
    return (!a && !b) || (a && b && std::equal(a, a + p, b));
  };
  if (!same(held.recv.counts, given.recv_counts) || !same(held.recv.displacements, given.recv_displacements)) return false;
  return held.in_place || (same(held.send.counts, given.send_counts) && same(held.send.displacements, given.send_displacements));
}

bool same_call(const ibcoll_collective_args_t& a, const ibcoll_collective_args_t& b) {
  return a.send == b.send && a.recv == b.recv && a.bytes == b.bytes && a.count == b.count && a.type == b.type &&
         a.op == b.op && a.root == b.root;
}

}  // namespace

Status Context::run_blocking(TeamHandle& team, const ibcoll_collective_args_t& given, std::unique_lock<std::mutex>& guard) {
  TeamHandle::Shorthand& last = team.shorthands[given.collective];
  const auto p = static_cast<size_t>(team.team->size());
  // A user-defined operation may have been freed and made anew at the same address.
  const bool repeat = last.request && !last.request->in_flight() && same_call(last.args, given) &&
                      (!given.op || given.op->index >= 0) && same_counts(last.request->args(), given, p);
  if (!repeat) {
    if (!team.team->failure().ok()) return team.team->failure();
    const Result<Args> args = check_arguments(given, team.team->rank(), team.team->size());
    if (!args.ok()) return args.status();
    Result<std::unique_ptr<Request>> made = make_request(team, args.value(), nullptr, IBCOLL_SCHEME_AUTO);
    if (!made.ok()) return made.status();
    if (last.request && last.request->in_flight()) {  // another thread is inside the same shorthand
      if (Status status = (*made)->start(); !status.ok()) return status;
      return wait(**made, INFINITY, guard);
    }
    last = {given, std::move(*made)};
  }
  Request& request = *last.request;
  if (Status status = request.start(); !status.ok()) return status;
  return wait(request, INFINITY, guard);
}

std::string Context::explain(TeamHandle& team, const ibcoll_collective_args_t& given) const {
  Args args;
  args.collective = given.collective;
  args.recv.counts = given.collective == IBCOLL_ALLGATHERV ? given.recv_counts : nullptr;
  const bool blocks = given.collective != IBCOLL_BCAST && given.collective != IBCOLL_ALLREDUCE;
  (blocks ? args.recv.bytes : args.bytes) = given.bytes;
  if (given.collective == IBCOLL_ALLREDUCE && given.op && type_bytes(given.type) > 0) {
    args.bytes = given.count * type_bytes(given.type);
    args.reduction = {given.op, given.type, reduce_kernel(given.op, given.type)};
  }
  return ibcoll::explain(args.collective, shape_of(team, args, scheme_of(given.scheme)), team.model,
                         forced(args.collective, given.algorithm));
}

// ---------------------------------------------------------------- progress

namespace {

// Changes under the context's lock only, so that no atomic read-modify-write is needed.
class WaitingThread {
 public:
  explicit WaitingThread(std::atomic<int>& count) : count_(count) { add(1); }
  WaitingThread(const WaitingThread&) = delete;
  WaitingThread& operator=(const WaitingThread&) = delete;
  ~WaitingThread() { add(-1); }

 private:
  void add(int change) { count_.store(count_.load(std::memory_order_relaxed) + change, std::memory_order_relaxed); }
  std::atomic<int>& count_;
};

}  // namespace

bool Context::progress() noexcept {
  const bool moved = engine_->progress();
  if (report_asked()) [[unlikely]]
    report_if_asked(*this);
  if (moved)
    idle_ = 0;
  else if (++idle_ % kIdleRoundsPerCheck == 0)
    engine_->check();
  return moved;
}

Status Context::wait(Request& request, double seconds, std::unique_lock<std::mutex>& guard) {
  if (!request.in_flight()) return request.status();
  const WaitingThread inside(waiting_threads_);
  WaitStrategy::Pause pause(*waiting_);
  const bool limited = std::isfinite(seconds);
  const Time end = limited ? engine_->now() + static_cast<Time>(std::max(0.0, seconds) * 1e9) : 0;
  for (;;) {
    for (uint32_t i = 0; i < waiting_->spins(); ++i) {
      if (engine_->progress()) pause.fresh();
      if (!request.in_flight()) return request.status();
      relax();
    }
    if (limited && engine_->now() >= end)
      return error(IBCOLL_ERR_TIMEOUT, "rank {}: {} is not complete after {} s: it {}", request.team().rank(), request.call(),
                   seconds, request.comm().describe_wait());
    if (report_asked()) [[unlikely]]
      report_if_asked(*this);
    guard.unlock();
    const bool long_wait = pause.pause();
    guard.lock();
    if (!request.in_flight()) return request.status();
    if (long_wait) engine_->check();
  }
}

}  // namespace ibcoll
