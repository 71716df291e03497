// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/agreement.h"

#include <utility>

namespace ibcoll {
namespace {

// A rank that waits progresses at least this often: other ranks may need it, and UCX counts one that does not as dead.
constexpr double kPassSeconds = 0.005;
constexpr Time kAnswerNs = 5'000'000'000;  // for the verdict after this rank's deadline
constexpr Time kNever = ~Time{0};

}  // namespace

Status Agreement::may_vote(const char* call, TeamHandle& team) const {
  if (team_) return error(IBCOLL_ERR_BUSY, "{}: another thread of this rank waits in an agreement", call);
  if (team.team->failure().ok() && !team.team->calls().idle())
    return error(IBCOLL_ERR_BUSY,
                 "{}: {} requests are in flight, and have not failed; wait for them, or revoke the team", call,
                 team.team->calls().count());
  if (team.team->size() == 1 || bootstrap_->arbiter()) return {};
  return error(IBCOLL_ERR_UNSUPPORTED,
               "{}: ranks agree by ibcoll_run, which has started none of these (they met by {}); start the program by "
               "ibcoll_run, also inside of an allocation of Slurm or PBS",
               call, bootstrap_->name());
}

Result<Agreement::Verdict> Agreement::hold(const TeamHandle& team, Arbiter::Vote vote, ContextLock::Guard& guard) {
  if (vote.members.size() == 1) {
    Verdict alone{vote.key, {}, vote.key.round, vote.flags, {}, std::move(vote.offer)};
    alone.dead.resize(static_cast<size_t>(bootstrap_->size()));
    return alone;
  }
  const struct Waits {
    Waits(const TeamHandle*& place, const TeamHandle& team) noexcept : place(place) { place = &team; }
    Waits(const Waits&) = delete;
    Waits& operator=(const Waits&) = delete;
    ~Waits() { place = nullptr; }
    const TeamHandle*& place;
  } waits(team_, team);
  Result<Verdict> decided = wait(*bootstrap_->arbiter(), vote, guard);
  if (!decided.ok()) return decided.status();
  if (!decided->status.ok())
    return error(decided->status.code(), "rank {}: {}", bootstrap_->rank(), decided->status.text());
  progress_.apply_verdict(decided->dead);
  return decided;
}

Result<Agreement::Verdict> Agreement::wait(Arbiter& arbiter, const Arbiter::Vote& vote, ContextLock::Guard& guard) {
  std::vector<bool> accused(static_cast<size_t>(bootstrap_->size()));
  if (Status sent = accuse(arbiter, vote, accused); !sent.ok()) return sent;
  if (Status sent = arbiter.vote(vote); !sent.ok()) return sent;
  const Engine& engine = progress_.engine();
  const Time timeout = engine.limits().timeout_ns;
  Time deadline = timeout > 0 ? engine.now() + timeout : kNever;
  for (bool withdrawn = false;;) {
    Result<std::optional<Verdict>> next = arbiter.verdict();
    if (!next.ok()) return next.status();
    if (*next && (*next)->key == vote.key) return std::move(**next);
    if (*next) continue;  // of a ballot that this rank gave up
    progress_.pass();
    if (Status sent = accuse(arbiter, vote, accused); !sent.ok()) return sent;
    if (engine.now() >= deadline) {
      if (withdrawn)
        return error(IBCOLL_ERR_BOOTSTRAP, "rank {}: ibcoll_run does not answer; is it stopped?", bootstrap_->rank());
      if (Status sent = arbiter.withdraw(vote.key); !sent.ok()) return sent;
      withdrawn = true;
      deadline = engine.now() + kAnswerNs;
    }
    guard.unlock();
    arbiter.wait(kPassSeconds);
    guard.lock();
  }
}

// A member that this rank counts as dead must end: it may live, and not be reached any more. Ranks that leave together
// close their connections, and are not accused for that.
Status Agreement::accuse(Arbiter& arbiter, const Arbiter::Vote& vote, std::vector<bool>& accused) const {
  const LostRanks& lost = progress_.engine().lost();
  if (vote.call == Call::kLeave || !lost.any_dead()) return {};
  for (const int rank : vote.members) {
    const auto i = static_cast<size_t>(rank);
    if (accused[i] || !lost.dead(rank)) continue;
    accused[i] = true;
    if (Status sent = arbiter.accuse(rank); !sent.ok()) return sent;
  }
  return {};
}

}  // namespace ibcoll
