// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/shrink.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "runtime/base/hash.h"

namespace ibcoll {
namespace {

using Call = Arbiter::Call;

int job_rank_in(const TeamHandle& team) { return team.team->members().job_rank(team.team->rank()); }

Result<Arbiter::Verdict> vote(TeamHandle& team, Agreement& agreement, Call call, const char* name, uint64_t flags,
                              ContextLock::Guard& guard) {
  if (Status may = agreement.may_vote(name, team); !may.ok()) return may;
  const TeamMembers& members = team.team->members();
  return agreement.hold(team, {{members.epoch(), team.ballots++}, call, flags, members.placement().job_ranks(), {}},
                        guard);
}

// Collects what each rank offers for the new team, by a ballot of those ranks. `died`: the ranks of the job that have,
// meanwhile; the same on all others.
struct Gathered {
  std::vector<bool> died;
  uint64_t number = 0;
};
Status gather(TeamHandle& parent, Agreement& agreement, uint64_t epoch, const std::vector<int>& ranks, ConstBytes mine,
              Bytes all, ContextLock::Guard& guard, Gathered& gathered) {
  const int self = job_rank_in(parent);
  std::string offer(reinterpret_cast<const char*>(mine.data()), mine.size());
  Result<Arbiter::Verdict> verdict =
      agreement.hold(parent, {{epoch, 0}, Call::kForm, 0, ranks, std::move(offer)}, guard);
  if (!verdict.ok()) return verdict.status();
  gathered.number = verdict->number;
  if (std::any_of(ranks.begin(), ranks.end(), [&](int r) { return verdict->dead[static_cast<size_t>(r)]; })) {
    gathered.died = std::move(verdict->dead);
    return error(IBCOLL_ERR_PEER_FAILED, "rank {}: another rank died while the team was made", self);
  }
  if (verdict->offers.size() != all.size())
    return error(IBCOLL_ERR_BOOTSTRAP, "rank {}: ibcoll_run gathered {} bytes of {} for a new team", self,
                 verdict->offers.size(), all.size());
  std::vector<int> ascending = ranks;  // as the offers lie
  std::sort(ascending.begin(), ascending.end());
  for (size_t i = 0; i < ranks.size(); ++i) {
    const auto at = std::lower_bound(ascending.begin(), ascending.end(), ranks[i]) - ascending.begin();
    std::memcpy(all.data() + i * mine.size(), verdict->offers.data() + static_cast<size_t>(at) * mine.size(),
                mine.size());
  }
  return {};
}

}  // namespace

Result<Agreed> agree_on_failed(TeamHandle& team, Agreement& agreement, uint64_t flags, ContextLock::Guard& guard) {
  Result<Arbiter::Verdict> verdict = vote(team, agreement, Call::kAgree, "ibcoll_team_agree", flags, guard);
  if (!verdict.ok()) return verdict.status();
  Agreed agreed{verdict->flags, {}};
  for (int peer = 0; peer < team.team->size(); ++peer)
    if (verdict->dead[static_cast<size_t>(team.team->members().job_rank(peer))]) agreed.failed.push_back(peer);
  return agreed;
}

// Ranks that die while the team is made are left out, too: each attempt has a ballot of its own, and ends with the
// same survivors on all of them.
Result<TeamHandle*> shrink_team(TeamHandle& parent, Agreement& agreement, const MakeTeam& make,
                                ContextLock::Guard& guard) {
  Result<Arbiter::Verdict> verdict = vote(parent, agreement, Call::kShrink, "ibcoll_team_shrink", 0, guard);
  if (!verdict.ok()) return verdict.status();
  Gathered last{std::move(verdict->dead), verdict->number};
  std::vector<int> ranks = parent.team->members().placement().job_ranks();
  for (;;) {
    std::erase_if(ranks, [&](int rank) { return last.died[static_cast<size_t>(rank)]; });
    const uint64_t epoch = Digest().add("shrunk").add(parent.team->members().epoch()).add(last.number).value();
    const auto self = static_cast<int>(std::find(ranks.begin(), ranks.end(), job_rank_in(parent)) - ranks.begin());
    last.died.clear();
    const auto exchange = [&](ConstBytes mine, Bytes all) {
      return gather(parent, agreement, epoch, ranks, mine, all, guard, last);
    };
    Result<TeamHandle*> made = make(ranks, self, epoch, exchange);
    if (made.ok() || last.died.empty()) return made;
  }
}

}  // namespace ibcoll
