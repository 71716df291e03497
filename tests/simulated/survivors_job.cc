// SPDX-License-Identifier: BSD-3-Clause
#include "tests/simulated/survivors_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <numeric>

#include "bootstrap/ballot_messages.h"
#include "runtime/collectives/framework/registry.h"
#include "runtime/context/shrink.h"
#include "tests/simulated/scenario.h"

namespace ibcoll {
namespace {

constexpr Time kMillisecond = 1'000'000;
constexpr Time kBetweenLooks = 10 * kMillisecond;  // between two looks at deadlines and peers
constexpr Time kSlowest = 3 * kMillisecond;        // message between a rank and the launcher
constexpr Time kEndNotice = 20 * kMillisecond;     // from a death to its report, at most
constexpr Time kAccusation = 250 * kMillisecond;   // from an accusation to the end of the accused
constexpr Time kTimeout = 2'000 * kMillisecond, kLateness = 3'000 * kMillisecond;
constexpr Time kLongest = 120'000 * kMillisecond;  // of the whole run
constexpr uint64_t kMostEvents = 40'000'000;
constexpr uint64_t kWorld = 1;  // epoch
constexpr uint64_t kEnough = 2, kWell = 1;

std::vector<int> ranks_below(int p) {
  std::vector<int> all(static_cast<size_t>(p));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

sim::Params network_of(const SurvivorsParams& params, sim::Random& random) {
  sim::Params network;
  network.ranks = params.p;
  network.seed = random.next();
  network.detection = random.one_in(2) ? sim::Detection::kByItself : sim::Detection::kWhenChecked;
  network.report_to_all = random.one_in(2);
  network.refuse_permille = random.one_in(4) ? 100 : 0;
  network.hide_permille = random.one_in(4) ? 300 : 0;
  return network;
}

}  // namespace

// ---------------------------------------------------------------- a rank's connection to the launcher

class SurvivorsJob::RankBootstrap : public Bootstrap, public Arbiter {
 public:
  RankBootstrap(SurvivorsJob& job, int rank) : job_(job), rank_(rank) {}
  std::string name() const override { return "the simulated launcher"; }
  int rank() const override { return rank_; }
  int size() const override { return job_.params_.p; }
  Status allgather(std::span<const std::byte>, std::span<std::byte>) override {
    return error(IBCOLL_ERR_UNSUPPORTED, "simulated ranks need none");
  }
  std::vector<Ended> ended() override { return std::exchange(reports, {}); }
  Arbiter* arbiter() override { return this; }

  bool keeps_going() const override { return true; }
  Status vote(const Vote& vote) override {
    std::vector<bool> members(static_cast<size_t>(size()));
    for (const int rank : vote.members) members[static_cast<size_t>(rank)] = true;
    run::Ballot::Vote packed{vote.call, vote.flags, rendezvous::pack_ranks(members), vote.offer};
    job_.to_launcher(rank_, [this, key = vote.key, packed = std::move(packed)]() mutable {
      job_.voters_[key].insert(rank_);
      job_.announce(job_.ballots_.vote(rank_, key, std::move(packed)));
    });
    return {};
  }
  Status accuse(int rank) override {
    job_.to_launcher(rank_, [this, rank] { job_.accuse(rank_, rank); });
    return {};
  }
  Status withdraw(const Key& key) override {
    job_.to_launcher(rank_, [this, key] { job_.announce(job_.ballots_.withdraw(rank_, key)); });
    return {};
  }
  Result<std::optional<Verdict>> verdict() override {
    std::optional<Verdict> first;
    if (verdicts.empty()) return first;
    first = *verdicts.front();
    verdicts.pop_front();
    return first;
  }
  void wait(double seconds) override { job_.pause_for(rank_, static_cast<Time>(seconds * 1e9)); }

  std::vector<Ended> reports;
  std::deque<std::shared_ptr<const Verdict>> verdicts;  // of thousands of ranks: one for all

 private:
  SurvivorsJob& job_;
  const int rank_;
};

SurvivorsJob::SurvivorsJob(const SurvivorsParams& params)
    : params_(params),
      random_(params.seed),
      network_(network_of(params, random_)),
      events_of_poll_(16),
      ballots_(static_cast<size_t>(params.p)) {
  placements_[kWorld] = std::make_shared<const Placement>(ranks_below(params_.p), ranks_below(params_.p));
  if (params_.late) late_rank_ = static_cast<int>(random_.below(static_cast<uint64_t>(params_.p)));
  EngineLimits limits;
  if (params_.late) limits.timeout_ns = kTimeout;
  limits.deaths_are_reported = true;
  for (int rank = 0; rank < params_.p; ++rank) {
    ranks_.push_back(std::make_unique<Rank>());
    Rank& self = *ranks_.back();
    auto bootstrap = std::make_unique<RankBootstrap>(*this, rank);
    self.launcher = bootstrap.get();
    self.bootstrap = std::move(bootstrap);
    self.progress.open(
        std::make_unique<Engine>(rank, params_.p, network_.transport(rank), limits, std::span(events_of_poll_)),
        *self.bootstrap, nullptr);
    self.agreement = std::make_unique<Agreement>(self.bootstrap, self.progress);
    self.teams.push_back(std::make_unique<TeamHandle>());
    self.teams.back()->team =
        std::make_unique<Team>(self.progress.engine(), kWorld, placements_[kWorld], rank, nullptr);
    self.fiber = std::make_unique<Fiber>([this, rank] { live(rank); });
    network_.wake_at(rank, delay(kMillisecond));
  }
}

SurvivorsJob::~SurvivorsJob() {
  for (const auto& self : ranks_) {
    self->fiber.reset();
    self->requests.clear();
    self->teams.clear();
    self->progress.close();
  }
}

// ---------------------------------------------------------------- ranks

void SurvivorsJob::live(int rank) {
  Rank& self = *ranks_[static_cast<size_t>(rank)];
  ContextLock::Guard guard = self.lock.enter();
  call_collectives_and_agree(rank, guard);
  const std::vector<int>& all = placements_[kWorld]->job_ranks();
  const auto parted =
      self.agreement->hold(*self.teams.front(), {{kWorld, ~uint32_t{0}}, Arbiter::Call::kLeave, 0, all, {}}, guard);
  if (!parted.ok()) fail(fmt::format("rank {} leaves: {}", rank, parted.status().text()));
  to_launcher(rank, [this, rank] {
    left_.insert(rank);
    announce(ballots_.leave(rank));
  });
}

// The pattern of docs/survivors.md.
void SurvivorsJob::call_collectives_and_agree(int rank, ContextLock::Guard& guard) {
  Rank& self = *ranks_[static_cast<size_t>(rank)];
  const auto same = [&](uint64_t epoch, uint32_t round, std::string answer) {
    const auto [known, is_new] = answers_.try_emplace({epoch, round}, answer);
    if (known->second != answer)
      fail(fmt::format("rank {} got '{}' from ballot {} of epoch {}, another one '{}'", rank, answer, round, epoch,
                       known->second));
    return is_new;
  };
  for (int phase = 0; phase < 100; ++phase) {
    TeamHandle& team = *self.teams.back();
    const uint64_t epoch = team.team->members().epoch();
    const bool well = work(rank, team);
    if (!well) revoke(self, team);
    if (rank == late_rank_ && phase == 1) sleep(rank, kLateness);
    uint32_t round = team.ballots;
    const uint64_t flags = (well ? kWell : 0) | (phase >= params_.phases ? kEnough : 0);
    const Result<Agreed> agreed = agree_on_failed(team, *self.agreement, flags, guard);
    if (!agreed.ok()) {
      if (agreed.status().code() != IBCOLL_ERR_TIMEOUT || late_rank_ < 0) return fail(agreed.status().text());
      result_.timeouts += same(epoch, round, "TIMEOUT") ? 1 : 0;
      continue;
    }
    same(epoch, round, fmt::format("{} {}", agreed->flags, fmt::join(agreed->failed, ",")));
    for (const int failed : agreed->failed)
      if (!self.progress.engine().lost().dead(team.team->members().job_rank(failed)))
        fail(fmt::format("rank {} agrees that rank {} has failed, and awaits it", rank, failed));
    const bool all_well = (agreed->flags & kWell) != 0 && agreed->failed.empty();
    if (all_well && (agreed->flags & kEnough) != 0) return;
    if (all_well) continue;
    round = team.ballots;
    const auto make_team = [&](const std::vector<int>& jobs, int place, uint64_t next, const Teams::Gather& gather) {
      return make(rank, jobs, place, next, gather);
    };
    Result<TeamHandle*> shrunk = shrink_team(team, *self.agreement, make_team, guard);
    if (!shrunk.ok()) return fail(fmt::format("rank {} shrinks: {}", rank, shrunk.status().text()));
    const TeamMembers& members = (*shrunk)->team->members();
    result_.shrinks +=
        same(epoch, round, fmt::format("{} {}", members.epoch(), fmt::join(members.placement().job_ranks(), ","))) ? 1
                                                                                                                   : 0;
    for (const int failed : agreed->failed)
      if (const auto& jobs = members.placement().job_ranks();
          std::find(jobs.begin(), jobs.end(), team.team->members().job_rank(failed)) != jobs.end())
        fail("a dead rank is in a new team");
    self.requests.clear();
    if (self.teams.size() > 2) self.teams.erase(self.teams.end() - 2);
  }
  fail("the ranks go on for ever");
}

// Some calls, whose results are verified. False: one failed.
bool SurvivorsJob::work(int rank, TeamHandle& team) {
  Rank& self = *ranks_[static_cast<size_t>(rank)];
  const int place = team.team->rank();
  for (int i = 0; i < 3; ++i) {
    Call& call = call_of(team, static_cast<int>(self.requests.size()));
    call.buffers->at(place).fill(0);
    self.requests.push_back(make_request(*team.team, *call.buffers, *call.algorithm));
    Request& request = *self.requests.back();
    Status status = request.start();
    while (status.ok() && request.in_flight()) {
      if (self.progress.pass() > 0) network_.wake(rank);
      if (request.in_flight()) Fiber::pause();
    }
    if (status.ok()) status = request.status();
    if (status.ok()) {
      if (const std::string wrong = call.buffers->at(place).check(0); !wrong.empty()) fail(wrong);
    } else if (status.code() != IBCOLL_ERR_PEER_FAILED && status.code() != IBCOLL_ERR_REVOKED) {
      fail(fmt::format("rank {}: {}", rank, status.text()));
    }
    call.buffers->at(place).scribble();
    call.over.insert(place);
    if (!status.ok()) return false;
  }
  return true;
}

SurvivorsJob::Call& SurvivorsJob::call_of(const TeamHandle& team, int number) {
  const TeamMembers& members = team.team->members();
  Call& call = calls_[{members.epoch(), number}];
  if (call.buffers) return call;
  Shape shape;
  do {
    const auto collective =
        params_.data ? static_cast<ibcoll_collective_t>(random_.below(kCollectives)) : IBCOLL_BARRIER;
    call.buffers =
        std::make_unique<CollectiveCase>(random_case(random_, collective, members.size(), 100, {}), random_.next());
    shape = call.buffers->shape();
    shape.p = shape.nodes = members.size();
    shape.fewest_local = shape.most_local = 1;
    shape.nodes_in_rank_order = members.placement().in_rank_order();
    std::vector<const Algorithm*> applicable;
    for (const Algorithm* const a : algorithms())
      if (a->collective == collective && !a->why_not(shape) &&
          (params_.data || a->name == std::string("dissemination")))
        applicable.push_back(a);
    call.algorithm = applicable.empty() ? nullptr : applicable[random_.below(applicable.size())];
  } while (!call.algorithm || (call.algorithm->parameter.unit != Parameter::Unit::kNone && !call.algorithm->choose));
  return call;
}

// As ibcoll_team_revoke().
void SurvivorsJob::revoke(Rank& self, TeamHandle& team) {
  TeamHealth& health = team.team->health();
  if (health.good()) health.fail(error(IBCOLL_ERR_REVOKED, "rank {} revoked the team", team.team->rank()));
  self.progress.spread_failure(*team.team);
}

// The part of Teams::form() that concerns the exchange. The team is there before any rank can use it.
Result<TeamHandle*> SurvivorsJob::make(int rank, const std::vector<int>& jobs, int self, uint64_t epoch,
                                       const Teams::Gather& gather) {
  struct Offer {
    uint64_t epoch;
    int64_t rank;
    uint64_t unused[2];
  };
  static_assert(sizeof(Offer) == Teams::kOfferBytes);
  Rank& own = *ranks_[static_cast<size_t>(rank)];
  std::shared_ptr<const Placement>& placement = placements_[epoch];
  if (!placement) placement = std::make_shared<const Placement>(jobs, ranks_below(params_.p));
  if (placement->job_ranks() != jobs) fail(fmt::format("rank {}: other members of epoch {}", rank, epoch));
  if (placement->job_rank(self) != rank) fail(fmt::format("rank {}: not its place in epoch {}", rank, epoch));
  auto handle = std::make_unique<TeamHandle>();
  handle->team = std::make_unique<Team>(own.progress.engine(), epoch, placement, self, nullptr);
  const Offer mine{epoch, rank, {}};
  std::vector<Offer> all(jobs.size());
  if (Status status = gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all))); !status.ok())
    return status;
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].rank != jobs[i] || all[i].epoch != epoch)
      fail(fmt::format("rank {}: not the offer of {}", rank, jobs[i]));
  own.teams.push_back(std::move(handle));
  return own.teams.back().get();
}

// Its transport goes on.
void SurvivorsJob::sleep(int rank, Time time) {
  for (const Time end = network_.now() + time; network_.now() < end; pause_for(rank, kBetweenLooks))
    ranks_[static_cast<size_t>(rank)]->progress.pass();
}

// Or less, if something happens. The rank has one alarm, however often it is woken before that.
void SurvivorsJob::pause_for(int rank, Time time) {
  Time& alarm = ranks_[static_cast<size_t>(rank)]->alarm;
  if (alarm <= network_.now()) network_.wake_at(rank, alarm = network_.now() + time);
  Fiber::pause();
}

// ---------------------------------------------------------------- the launcher

// In the order in which they were sent. A rank wakes in vain at that time, so that it comes.
void SurvivorsJob::to_launcher(int rank, std::function<void()> arrives) {
  Time& last = ranks_[static_cast<size_t>(rank)]->from;
  last = std::max(last, network_.now() + delay(kSlowest));
  messages_.emplace(last, std::move(arrives));
  network_.wake_at(rank, last);
}

void SurvivorsJob::to_rank(int rank, std::function<void()> arrives) {
  Time& last = ranks_[static_cast<size_t>(rank)]->to;
  last = std::max(last, network_.now() + delay(kSlowest));
  messages_.emplace(last, [this, rank, arrives = std::move(arrives)] {
    arrives();
    network_.wake(rank);
  });
  network_.wake_at(rank, last);
}

void SurvivorsJob::announce(const run::Ballots::Decisions& decisions) {
  for (const run::Ballots::Decision& decision : decisions) {
    check(decision.verdict);
    const auto verdict = std::make_shared<const Arbiter::Verdict>(decision.verdict);
    for (const int rank : decision.receivers) {
      if (!voters_[verdict->key].contains(rank)) fail(fmt::format("rank {} gets a verdict without a vote", rank));
      to_rank(rank,
              [this, rank, verdict] { ranks_[static_cast<size_t>(rank)]->launcher->verdicts.push_back(verdict); });
    }
  }
}

// No rank that runs is listed.
void SurvivorsJob::check(const Arbiter::Verdict& verdict) {
  for (size_t i = 0; i < verdict.dead.size(); ++i) {
    const int rank = static_cast<int>(i);
    if (verdict.dead[i] && lives(rank) && !left_.contains(rank))
      fail(fmt::format("rank {} is listed, and lives", rank));
  }
}

void SurvivorsJob::accuse(int accuser, int accused) {
  if (!ballots_.accuse(accuser, accused)) return;
  messages_.emplace(network_.now() + kAccusation, [this, accused] {
    if (!ballots_.gone(accused)) kill(accused);
  });
  network_.wake_at(accuser, network_.now() + kAccusation);
}

// What the rank has sent arrives before its end is noticed.
void SurvivorsJob::kill(int rank) {
  if (!lives(rank)) return;
  network_.kill(rank, network_.now());
  while (lives(rank)) network_.advance();
  ++result_.dead;
  const Time noticed = std::max(ranks_[static_cast<size_t>(rank)]->from, network_.now()) + delay(kEndNotice);
  messages_.emplace(noticed, [this, rank] {
    for (int other = 0; other < params_.p; ++other)
      if (other != rank && lives(other))
        to_rank(other, [this, other, rank] {
          ranks_[static_cast<size_t>(other)]->launcher->reports.push_back({rank, "it was killed"});
        });
    announce(ballots_.leave(rank));
  });
  network_.wake_at(rank, noticed);
}

// ---------------------------------------------------------------- time

void SurvivorsJob::event(int rank) {
  ++events_;
  std::vector<int> living;
  const bool dies = std::find(params_.deaths.begin(), params_.deaths.end(), events_) != params_.deaths.end();
  if (dies || events_ == params_.burial)
    for (int one = 0; one < params_.p; ++one)
      if (lives(one) && !ranks_[static_cast<size_t>(one)]->fiber->ended()) living.push_back(one);
  if (dies && living.size() > 1) kill(living[random_.below(living.size())]);
  if (events_ == params_.burial && living.size() > 1) {
    const int buried = living[random_.below(living.size())], other = living[random_.below(living.size())];
    if (buried != other && lives(other))
      ranks_[static_cast<size_t>(other)]->progress.engine().peer_ended(buried, "it does not answer");
  }
  if (lives(rank)) ranks_[static_cast<size_t>(rank)]->fiber->resume();
}

void SurvivorsJob::tick() {
  ticked_ = network_.now();
  for (int rank = 0; rank < params_.p; ++rank) {
    if (!lives(rank) || ranks_[static_cast<size_t>(rank)]->fiber->ended()) continue;
    ranks_[static_cast<size_t>(rank)]->progress.check();
    network_.wake(rank);
  }
}

bool SurvivorsJob::all_ended() const {
  for (int rank = 0; rank < params_.p; ++rank)
    if (lives(rank) && !ranks_[static_cast<size_t>(rank)]->fiber->ended()) return false;
  return true;
}

SurvivorsResult SurvivorsJob::run() {
  for (uint64_t steps = 0; result_.failure.empty(); ++steps) {
    while (!messages_.empty() && messages_.begin()->first <= network_.now()) {
      const std::function<void()> arrives = std::move(messages_.begin()->second);
      messages_.erase(messages_.begin());
      arrives();
    }
    if (steps % 16 == 0 && all_ended()) break;
    if (network_.now() > kLongest || events_ > kMostEvents) fail("ranks wait for ever");
    if (network_.now() >= ticked_ + kBetweenLooks) tick();
    if (network_.has_runnable() && !(random_.one_in(8) && !network_.idle()))
      event(network_.take_runnable());
    else if (!network_.advance())
      network_.advance_to(network_.now() + kBetweenLooks);
  }
  for (auto& [key, call] : calls_)
    for (const int place : call.over)
      if (lives(placements_[key.first]->job_rank(place)))
        if (const std::string wrong = call.buffers->at(place).check_scribbled(); !wrong.empty()) fail(wrong);
  result_.events = events_;
  return result_;
}

void SurvivorsJob::fail(std::string text) {
  if (result_.failure.empty()) result_.failure = std::move(text);
}

}  // namespace ibcoll
