// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/context.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "runtime/base/float_environment.h"
#include "runtime/base/log.h"
#include "runtime/collectives/framework/registry.h"
#include "runtime/context/trace_library.h"
#include "runtime/machine/topology.h"

namespace ibcoll {
namespace {

constexpr int kLastPolls = 1'000;  // for messages, while there are any

// 0: for ever
Time in_ns(double seconds) noexcept { return seconds < kForEver ? static_cast<Time>(seconds * 1e9) : 0; }

}  // namespace

// ---------------------------------------------------------------- joining

Result<std::unique_ptr<Context>> Context::create(const ibcoll_bootstrap_t* callbacks) {
  const DefaultFloatEnvironment alike_on_all_ranks;  // settings are numbers, too
  std::unique_ptr<Context> context(try_twice([] { return new Context(); }));
  Status status = context->open(callbacks);
  if (status.ok()) return context;
  const ContextLock::Guard guard = context->enter();  // the network's library is called: NetworkEnd
  context->close();
  context->job_.net.reset();
  return status;
}

Status Context::open(const ibcoll_bootstrap_t* callbacks) {
  host_ = HostProgram::of(callbacks);
  const Status settings = or_no_memory([this] { return read_settings(); });
  if (!settings.ok() && !callbacks) return settings;  // a launcher notifies the others that this rank failed
  const auto make = [&] { return make_bootstrap(callbacks); };
  Result<std::unique_ptr<Bootstrap>> bootstrap = callbacks ? try_twice(make) : make();
  if (!bootstrap.ok()) return bootstrap.status();
  bootstrap_ = std::move(*bootstrap);
  set_log_rank(size() > 1 ? rank() : -1);
  if (callbacks)
    if (Status all = agree(*bootstrap_, settings); !all.ok()) return all;
  if (rank() == 0) {
    for (const std::string& warning : config_.warnings()) log(LogLevel::kWarning, "{}", warning);
  }
  {
    const ContextLock::Guard guard = enter();  // it calls the network's library: NetworkEnd
    Result<JoinedJob> job = join_job(*bootstrap_, config_, host_);
    if (!job.ok()) return job.status();
    job_ = std::move(*job);
  }
  if (rank() == 0 && size() > 1) tuning_.read(config_, job_, size());
  if (Status made = make_world(); !made.ok()) return made;
  if (Status shared = share_tuning(); !shared.ok()) return shared;
  let_host_decide_deadlines();
  return {};
}

Status Context::read_settings() {
  Result<Config> config = Config::load();
  if (!config.ok()) return config.status();
  config_ = std::move(*config);
  windows_.set_area_bytes(config_.bytes("IBCOLL_SHM_SLOT_BYTES") / 64 * 64);
  return selection_.read_settings(config_, in_host());
}

// Builds the parts with which this rank sends, receives and waits.
void Context::build_parts() {
  std::unique_ptr<Doorbell> doorbell;
  // The same on all ranks of the node: a rank that never sleeps still has to wake others.
  if (job_.shm && job_.ranks_per_core > 1) {
    std::vector<Bell*> bells;
    bells.reserve(static_cast<size_t>(job_.shm->node().segment().ranks()));
    for (int i = 0; i < job_.shm->node().segment().ranks(); ++i)
      bells.push_back(&job_.shm->node().segment().info(i).bell);
    doorbell = std::make_unique<Doorbell>(std::move(bells), job_.shm->node().self(), job_.one_cpu);
  }
  waiting_.open(std::make_unique<WaitStrategy>(config_.text("IBCOLL_WAIT"), job_.ranks_per_core, job_.one_cpu),
                std::move(doorbell));
  teams_.open(waiting_.doorbell());
  EngineLimits limits;
  limits.eager_bytes = config_.bytes("IBCOLL_EAGER_BYTES");
  limits.spill_bytes = config_.bytes("IBCOLL_SPILL_BYTES");
  limits.timeout_ns = in_ns(config_.seconds("IBCOLL_TIMEOUT"));
  limits.deaths_are_reported = agreement_.keeps_going();

  std::vector<Transport*> route(static_cast<size_t>(size()), nullptr);
  for (int i = 0; i < size(); ++i) {
    const bool local = job_.nodes[static_cast<size_t>(i)] == job_.nodes[static_cast<size_t>(rank())];
    if (i != rank()) route[static_cast<size_t>(i)] = local ? static_cast<Transport*>(job_.shm.get()) : job_.net.get();
  }
  progress_.open(std::make_unique<Engine>(rank(), std::move(route), limits), *bootstrap_, job_.net.get());
  trace_ = open_trace(config_, rank());
  if (trace_) calls_.trace_to(trace_->buffer());
  parted_.resize(static_cast<size_t>(size()));
}

// A rank that has no memory for its part reports that when the world team is made.
Status Context::make_world() {
  std::unique_ptr<Drainer> drainer;
  Teams::Members all;
  try_twice([&] { all.ranks.resize(static_cast<size_t>(size())); });
  std::iota(all.ranks.begin(), all.ranks.end(), 0);
  all.refusal = job_.lack.ok() ? or_no_memory([&]() -> Status {
    build_parts();
    if (job_.net) drainer = std::make_unique<Drainer>(lock_, *job_.net);
    return {};
  })
                               : job_.lack;
  const auto exchange = [this](ConstBytes mine, Bytes theirs) { return bootstrap_->allgather(mine, theirs); };
  tuning_bytes_ = tuning_.text().size();
  Result<std::unique_ptr<TeamHandle>> world = teams_.make_world(all, rank(), exchange, tuning_bytes_);
  if (!world.ok()) return world.status();
  world_ = std::move(*world);
  progress_.watch(*world_->team);
  if (job_.net) {
    if (Status connected = connect(); !connected.ok()) return connected;
    progress_.drain_with(std::move(drainer));
  }
  if (in_host() && size() > 1) answerer_.reset(new (std::nothrow) Answerer(lock_, progress_));
  return {};
}

// Opens the connections that leaving will need, by a barrier; when a second barrier has passed, all ranks have theirs.
// A rank that has passed it may call anything, and leave. If one of these calls fails before other ranks have passed,
// their own next call reports that failure.
Status Context::connect() {
  ContextLock::Guard guard = enter();
  if (Status opened = run_own_barrier(guard); !opened.ok()) return opened;
  Team& world = *world_->team;
  world.links().set_connects(false);
  if (!world.refuses())
    if (Status all_have = run_own_barrier(guard); world.failure().ok() && !all_have.ok()) return all_have;
  world.links().set_connects(true);
  return {};
}

Status Context::share_tuning() {
  if (tuning_bytes_ == 0) return {};
  std::vector<std::byte> buffer;
  const Status room = progress_.or_fail(*world_->team, [&]() -> Status {
    buffer.resize(tuning_bytes_);
    return {};
  });
  if (!room.ok()) return room;
  if (rank() == 0) std::ranges::copy(std::as_bytes(std::span(tuning_.text())), buffer.begin());
  Args args;
  args.collective = IBCOLL_BCAST;
  args.bytes = buffer.size();
  args.recv = {buffer.data(), buffer.size(), nullptr, nullptr};
  ContextLock::Guard guard = enter();
  if (Status sent = calls_.run_own(*world_, args, buffer, guard); !sent.ok()) return sent;
  return progress_.or_fail(*world_->team, [&]() -> Status {
    Result<Tuning> known = Tuning::parse({reinterpret_cast<const char*>(buffer.data()), buffer.size()}, nullptr);
    if (known.ok()) selection_.use(std::move(known.value()));
    return known.status();
  });
}

// Joining has had the deadline of any context: it waits for ranks that may not come at all.
void Context::let_host_decide_deadlines() noexcept {
  if (!in_host() || config_.value("IBCOLL_TIMEOUT").origin != "default") return;
  progress_.engine().set_timeout(host_.timeout_seconds > 0 ? in_ns(host_.timeout_seconds) : 0,
                                 "timeout_seconds of the host");
}

// A barrier of the job itself. Between nodes it always uses the same connections, whatever selection prefers.
Status Context::run_own_barrier(ContextLock::Guard& guard) {
  Forced pattern;
  const Status room = progress_.or_fail(*world_->team, [&]() -> Status {
    if (const Shape& shape = world_->profile.shape; shape.nodes > 1) {
      const char* const name = shape.most_local > 1 ? "leaders" : "dissemination";
      pattern = {{{.choice = {find_algorithm(IBCOLL_BARRIER, name)}}}, "ibcoll itself"};
    }
    return {};
  });
  if (!room.ok()) return room;
  Args barrier;
  barrier.collective = IBCOLL_BARRIER;
  std::vector<std::byte> no_buffers;
  return calls_.run_own(*world_, barrier, no_buffers, guard, pattern);
}

// ---------------------------------------------------------------- leaving

// Three barriers complete all messages between the ranks, and report whether their last calls mismatched; these
// barriers are not taken for barriers of the program. The first one may pass before an unexpected message has arrived;
// the second one gives it time; and the third one passes on no rank if such a message has arrived at any. A rank that
// has passed the third one leaves, so messages that other ranks still have for it are dropped. Closing the network
// transport sends what is queued in it. The final exchange keeps this process alive until all ranks have passed, for
// those that watch it. After a failure ranks leave at once. No connection is opened, as the peer may just be leaving.
Status Context::leave(ContextLock::Guard& guard) {
  write_trace();
  Team& world = *world_->team;
  Engine& engine = progress_.engine();
  const bool notified_before = world.health().failure().reported();
  world.links().set_connects(false);
  Status together;
  for (int round = 0; round < 3 && together.ok(); ++round) {
    if (round == 2) {
      for (int polls = 0; polls < kLastPolls && !world.links().report_completed(); ++polls) engine.progress();
      world.links().part();
    }
    together = run_own_barrier(guard);
    for (int polls = 0; polls < kLastPolls && engine.progress(); ++polls) {
    }
    if (together.ok() && round < 2) together = world.failure();
  }
  const bool keeps_going = agreement_.keeps_going();
  if (keeps_going) together = part_with_survivors(std::move(together), notified_before, guard);
  close();
  job_.net.reset();
  if (notified_before && !keeps_going) return {};
  if (!together.ok() || keeps_going) return together;
  const std::byte mine{1};
  guard.unlock();  // a host may call ibcoll_progress meanwhile
  Status parted = or_no_memory([&] { return bootstrap_->allgather(std::span(&mine, 1), parted_); });
  guard.lock();
  return parted;
}

// Where deaths do not end the job, survivors leave together: a rank that left at once would seem dead to those that are in
// their last calls. Those that have died are waited for by none. A death is no error here, nor is what the program has
// seen before: all data of the survivors' calls have arrived.
Status Context::part_with_survivors(Status together, bool seen, ContextLock::Guard& guard) {
  const std::vector<int>& all = world_->team->members().placement().job_ranks();
  const Result<Agreement::Verdict> parted = agreement_.hold(
      *world_, {{world_->team->members().epoch(), ~uint32_t{0}}, Arbiter::Call::kLeave, 0, all, {}}, guard);
  if (!parted.ok()) return parted.status();
  return seen || together.code() == IBCOLL_ERR_PEER_FAILED ? Status() : together;
}

void Context::close() noexcept {
  answerer_.reset();
  progress_.drain_with(nullptr);
  world_.reset();
  progress_.close();
}

Context::~Context() {
  write_trace();
  close();
}

void Context::write_trace() noexcept {
  if (!trace_ || !world_) return;
  const CostModel& model = world_->profile.model;
  TraceHeader header;
  header.rank = rank(), header.ranks = size(), header.job = job_.id;
  header.node = job_.nodes[static_cast<size_t>(rank())];
  header.cores = 0;
  for (const uint64_t cpus : cpu_share().cpus) header.cores += std::popcount(cpus);
  header.ranks_per_core = job_.ranks_per_core;
  header.link.alpha_us = model.alpha_us, header.link.cpu_us = model.cpu_us,
  header.link.beta_us_per_byte = model.beta_us;
  header.copy_us_per_byte = model.copy_us, header.flag_us = model.flag_us;
  trace_->write(header);
}

}  // namespace ibcoll
