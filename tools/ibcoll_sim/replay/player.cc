// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_sim/replay/player.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/collectives/framework/arguments.h"
#include "tools/ibcoll_sim/model.h"

namespace ibcoll::simulator {

Player::Player(const KnownCalls& calls, const Choices& choices, double speedup, double expected_us)
    : known_(calls),
      recording_(calls.recording()),
      choices_(choices),
      speedup_(speedup),
      watch_(expected_us),
      teams_(recording_.teams.size(), -1),
      ranks_(static_cast<size_t>(recording_.ranks)) {}

// Ends what a failed run left in flight.
Player::~Player() {
  for (const auto& [entry, owner] : flying_)
    if (entry->request->in_flight()) entry->request->end(failure_);
}

// One stretch of addresses stands for the buffers of all calls.
Status Player::prepare() {
  Extents most;
  uint64_t parts = 0;
  for (const RecordedCall& call : recording_.calls) {
    const Result<uint32_t> plan = plan_of(call.kind, call.site);
    if (!plan.ok()) return plan.status();
    ++plans_[plan.value()].calls;
    call_plans_.push_back(plan.value());
    parts = std::max(parts, call.first + static_cast<uint64_t>(recording_.size_of(call)));
  }
  moments_.resize(parts);
  for (const Plan& plan : plans_) {
    if (Status status = Calls::possible(plan.params, false); !status.ok()) return status;
    const Extents extents = extents_of(plan.params);
    most.send = std::max(most.send, extents.send), most.recv = std::max(most.recv, extents.recv);
  }
  send_bytes_ = most.send;
  addresses_ = std::make_unique<Addresses>(most.send + most.recv + 1);
  if (!addresses_->status().ok()) return addresses_->status();
  SimJobParams params = job_params(known_.machine(), addresses_->all());
  params.watch = [this](SimJob& job) { return failure_.ok() ? watch_.look(job) : failure_; };
  job_ = std::make_unique<SimJob>(std::move(params));
  for (Plan& plan : plans_) {
    int& team = teams_[static_cast<size_t>(recording_.kinds[plan.kind].team)];
    if (team < 0) team = job_->make_team(recording_.teams[static_cast<size_t>(recording_.kinds[plan.kind].team)]);
    plan.team = team;
  }
  return {};
}

Result<uint32_t> Player::plan_of(uint32_t kind, uint32_t site) {
  const auto known = plan_numbers_.find({kind, site});
  if (known != plan_numbers_.end()) return known->second;
  const Result<Choice> choice = choices_.of(kind, site);
  if (!choice.ok()) return choice.status();
  Plan plan;
  plan.kind = kind;
  plan.choice = choice.value();
  plan.params = params_of(recording_, recording_.kinds[kind]);
  plan.known = known_blocks(plan.params);
  const auto number = static_cast<uint32_t>(plans_.size());
  plans_.push_back(std::move(plan));
  plan_numbers_.emplace(std::pair(kind, site), number);
  return number;
}

std::string Player::algorithm(uint32_t kind, uint32_t site) const {
  return plans_[plan_numbers_.at({kind, site})].choice.name();
}

// Goes on with the steps of a rank that is free, up to one that has to be waited for.
void Player::advance(int number) {
  Rank& rank = ranks_[static_cast<size_t>(number)];
  const std::vector<Step>& program = recording_.programs[static_cast<size_t>(number)];
  while (rank.next < program.size()) {
    const Step& step = program[rank.next++];
    rank.free_at += static_cast<Time>(std::llround(static_cast<double>(step.gap_ns) / speedup_));
    if (step.what != Step::What::kWait) return start(number, step);
    Moments& moments = moments_of(step);
    moments.waits = static_cast<int64_t>(rank.free_at);
    if (std::find(rank.flying.begin(), rank.flying.end(), step.call) != rank.flying.end()) {
      rank.blocks_on = step.call;
      return;
    }
    moments.exit = std::max(moments.exit, moments.waits);
    rank.free_at = static_cast<Time>(moments.exit);
  }
}

void Player::start(int number, const Step& step) {
  Result<std::unique_ptr<Entry>> taken = take(step);
  if (!taken.ok()) return fail(taken.status());
  Entry& entry = *taken.value();
  flying_.emplace(&entry, std::move(taken.value()));
  Rank& rank = ranks_[static_cast<size_t>(number)];
  const Time now = job_->network().now();
  SimStep todo;
  todo.request = entry.request.get();
  todo.delay_ns = rank.free_at > now ? rank.free_at - now : 0;
  todo.after_all = false;
  todo.before_start = [this, number, &step] {
    Rank& starter = ranks_[static_cast<size_t>(number)];
    Moments& moments = moments_of(step);
    starter.free_at = job_->time_of(number);
    moments.arrival = moments.waits = static_cast<int64_t>(starter.free_at);
    if (step.what == Step::What::kRun) {
      starter.blocks_on = step.call;
      return;
    }
    starter.flying.push_back(step.call);
    advance(number);
  };
  todo.completed = [this, number, &step, &entry](const Status& status) {
    if (!status.ok()) fail(status);
    ended(number, step, entry);
  };
  job_->add_step(number, std::move(todo));
}

void Player::ended(int number, const Step& step, Entry& entry) {
  const auto owner = flying_.find(&entry);
  Pool& pool = pools_.at(pool_of(step));
  if (pool.left > 0)
    pool.idle.push_back(std::move(owner->second));
  else
    pools_.erase(pool_of(step));
  flying_.erase(owner);
  Rank& rank = ranks_[static_cast<size_t>(number)];
  std::erase(rank.flying, step.call);
  Moments& moments = moments_of(step);
  moments.exit = static_cast<int64_t>(job_->time_of(number));
  if (rank.blocks_on != step.call) return;
  rank.blocks_on = kNothing;
  moments.exit = std::max(moments.exit, moments.waits);
  rank.free_at = static_cast<Time>(moments.exit);
  advance(number);
}

// Takes the request of an equal call that has ended, or makes one.
Result<std::unique_ptr<Player::Entry>> Player::take(const Step& step) {
  const Plan& plan = plans_[call_plans_[step.call]];
  const auto [pool, is_new] = pools_.try_emplace(pool_of(step));
  if (is_new) pool->second.left = plan.calls;
  --pool->second.left;
  std::vector<std::unique_ptr<Entry>>& idle = pool->second.idle;
  if (!idle.empty()) {
    std::unique_ptr<Entry> entry = std::move(idle.back());
    idle.pop_back();
    return entry;
  }
  auto entry = std::make_unique<Entry>();
  const auto rank = static_cast<int>(step.member);
  entry->pairs = pair_lists(plan.params, rank);
  std::byte* const base = addresses_->all().data();
  const Result<Args> args = args_at(plan.params, rank, base, base + send_bytes_, plan.known, entry->pairs);
  if (!args.ok()) return args.status();
  const ibcoll_scheme_t scheme = plan.params.scheme;
  const uint32_t signature = call_signature(args.value(), plan.choice.name(), scheme, plan.params.p);
  entry->request = std::make_unique<Request>(job_->team(plan.team, rank), args.value(), plan.choice, scheme, signature);
  return entry;
}

Status Player::run() {
  if (Status status = prepare(); !status.ok()) return status;
  for (int rank = 0; rank < recording_.ranks; ++rank) advance(rank);
  Status status = failure_.ok() ? job_->run() : failure_;
  if (!failure_.ok()) status = failure_;
  return status;
}

}  // namespace ibcoll::simulator
