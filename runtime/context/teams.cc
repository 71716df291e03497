// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/teams.h"

#include <algorithm>
#include <numeric>

#include "runtime/base/float_environment.h"
#include "runtime/base/hash.h"
#include "runtime/base/reserve.h"
#include "runtime/context/context.h"

namespace ibcoll {
namespace {

constexpr uint64_t kNoWindow = NodeWindows::kNoWindow;

// The data that a rank contributes to the exchange for a new team; the leader of a node also the window that it made.
struct WindowOffer {
  uint64_t offset = kNoWindow;
  int32_t code = IBCOLL_OK;
  uint32_t members = 0;  // digest of the team's name and the list that this rank was called with; 0: nothing came
  uint32_t refused = 0;  // not 0: the kernel has refused this rank the use of another's memory, since the start
  uint32_t number = 0;   // above that of each team of this rank; the team gets the highest one
  uint64_t shares = 0;   // bytes that rank 0 will send to all
};

static_assert(sizeof(WindowOffer) <= Teams::kOfferBytes);

uint32_t digest_of(uint64_t epoch, const std::vector<int>& members, const std::vector<int>& jobs) {
  Digest digest;
  digest.add(epoch);
  for (const int member : members) digest.add(static_cast<uint64_t>(jobs[static_cast<size_t>(member)]));
  return digest.folded() | 1;
}

bool same_offer(const WindowOffer& a, const WindowOffer& b) {
  return a.offset == b.offset && a.code == b.code && a.members == b.members && a.refused == b.refused &&
         a.number == b.number && a.shares == b.shares;
}

// Ok, or why the ranks of the parent cannot make the team.
Status judge(const std::vector<WindowOffer>& offers, const WindowOffer& mine, const Teams::Members& members,
             const std::vector<int>& jobs, int rank) {
  for (size_t i = 0; i < offers.size(); ++i) {
    if (offers[i].code == IBCOLL_ERR_INVALID_ARGUMENT)
      return error(IBCOLL_ERR_MISMATCH, "rank {} of the parent was given a list of ranks that cannot be a team", i);
    if (offers[i].code != IBCOLL_OK)
      return error(static_cast<ibcoll_status_t>(offers[i].code),
                   "rank {} could not get the node window of a new team ({}); what it returns says why", jobs[i],
                   ibcoll_status_string(static_cast<ibcoll_status_t>(offers[i].code)));
  }
  if (!members.same_everywhere) return {};
  for (size_t i = 0; i < offers.size(); ++i)
    if (offers[i].members != mine.members && offers[i].members != 0)
      return error(IBCOLL_ERR_MISMATCH,
                   "rank {} of the parent was given another list of ranks for the new team than rank {} of the job, or "
                   "another id; all ranks of the parent, or all members, must call with the same list",
                   i, rank);
  return {};
}

}  // namespace

std::unique_ptr<TeamHandle> Teams::draft(uint64_t epoch, std::vector<int> members, int team_rank) {
  auto handle = std::make_unique<TeamHandle>();
  handle->context = &context_;
  Placement placement(std::move(members), job_.nodes);
  const std::span<const int> locals = placement.ranks_of(placement.node_of(team_rank));
  Shape& shape = handle->profile.shape;
  shape.p = placement.size();
  shape.nodes = placement.node_count();
  shape.fewest_local = placement.fewest_local();
  shape.most_local = placement.most_local();
  shape.nodes_in_rank_order = placement.in_rank_order();
  std::unique_ptr<NodeWindow> window;
  if (placement.most_local() > 1) {
    const uint64_t area_bytes = shape.area_bytes = windows_.area_bytes();
    std::vector<int> jobs;
    for (const int i : locals) jobs.push_back(placement.job_rank(i));
    const auto self = static_cast<int>(std::find(locals.begin(), locals.end(), team_rank) - locals.begin());
    const bool shared = locals.size() > 1;
    if (shared) {
      shape.crowded = placement.node_count() == 1 && job_.ranks_per_core > 1;
      handle->shared_window.push_back({{kNoWindow, epoch, jobs, self, area_bytes}});
    }
    window = std::make_unique<NodeWindow>(shared ? job_.memory.get() : nullptr, area_bytes, std::move(jobs), self,
                                          shared && job_.ranks_per_core > 1);
    if (shared && doorbell_)
      window->bells().use(*doorbell_, job_.shm->node().locals(handle->shared_window.front().place.jobs));
  }
  handle->team = std::make_unique<Team>(progress_.engine(), epoch, std::move(placement), team_rank, std::move(window));
  return handle;
}

Status Teams::make_window(TeamHandle& handle, uint64_t epoch, uint64_t& offset) {
  const bool lone = handle.shared_window.empty();
  if (lone && handle.team->window()) {
    Result<LoneWindow> made = windows_.allocate_lone(progress_.engine().rank());
    if (!made.ok()) return made.status();
    handle.lone_window = std::move(*made);
  }
  if (lone || handle.shared_window.front().place.rank != 0) return {};
  const Result<uint64_t> made = windows_.allocate(epoch, handle.team->window()->size());
  if (made.ok()) offset = made.value();
  return made.status();
}

Status Teams::complete(TeamHandle& handle, uint64_t offset, bool may_copy) {
  const DefaultFloatEnvironment alike_on_all_ranks;
  Team& team = *handle.team;
  NodeWindow* const window = team.window();
  TeamProfile& profile = handle.profile;
  if (handle.shared_window.empty()) {
    profile.fill_models(job_, progress_.engine().limits());
    if (window) window->place(handle.lone_window.get(), 0, {});
    return {};
  }
  WindowLocation& place = handle.shared_window.front().place;
  place.offset = offset;
  profile.shape.single_copy = may_copy && profile.shape.nodes == 1 && job_.shm->node().all_may_copy(place.jobs);
  profile.fill_models(job_, progress_.engine().limits());
  const int p = window->size();
  const NodeWindow::Limits limits{profile.model.read_from(p), profile.model.stream_from(p, windows_.area_bytes()),
                                  static_cast<uint64_t>(profile.model.leaves_caches(p))};
  Result<std::byte*> base = windows_.enter(place);
  if (!base.ok()) {
    windows_.leave(std::move(handle.shared_window), true);
    team.health().fail(base.status());  // the other ranks have made the team: they get the error
    return base.status();
  }
  window->place(*base, offset, limits);
  if (team.refuses()) window->presence().report_failure(team.failure().code());  // it has failed meanwhile
  return {};
}

// All memory of a team is allocated before the ranks agree on it: if a rank has none, no rank gets the team.
Result<std::unique_ptr<TeamHandle>> Teams::form(uint64_t epoch, const Members& wanted, const Parent& parent,
                                                const Gather& gather, uint64_t& shares) {
  windows_.give_back_some();
  std::vector<WindowOffer> offers;
  try_twice([&] { offers.resize(parent.jobs.size()); });
  const std::vector<int>& members = wanted.ranks;
  const auto found = std::find(members.begin(), members.end(), parent.self);
  const bool member = found != members.end();
  const auto team_rank = static_cast<int>(found - members.begin());
  std::unique_ptr<TeamHandle> handle;
  WindowOffer offer;
  offer.members = digest_of(epoch, members, parent.jobs);
  offer.refused = job_.shm && job_.shm->node().any_refused();
  offer.number = last_number_ + 1;
  offer.shares = shares;
  Status mine = wanted.refusal;
  if (member && mine.ok())
    mine = or_no_memory([&]() -> Status {
      reserve_one(teams_);
      std::vector<int> jobs;
      jobs.reserve(members.size());
      for (const int r : members) jobs.push_back(parent.jobs[static_cast<size_t>(r)]);
      handle = draft(epoch, std::move(jobs), team_rank);
      return make_window(*handle, epoch, offer.offset);
    });
  if (!mine.ok()) {
    offer.code = mine.code();
    handle.reset();
  }
  const auto leave_unmade = [&] {
    if (handle) windows_.leave_unmade(std::move(handle->shared_window), offer.offset);
  };
  if (Status status = gather(std::as_bytes(std::span(&offer, 1)), std::as_writable_bytes(std::span(offers)));
      !status.ok()) {
    leave_unmade();
    return status;
  }
  if (!mine.ok()) return mine;
  const int job_rank = parent.jobs[static_cast<size_t>(parent.self)];
  if (Status refused = judge(offers, offer, wanted, parent.jobs, job_rank); !refused.ok()) {
    if (offer.offset != kNoWindow) windows_.release(offer.offset, handle->team->window()->size());
    return refused;
  }
  if (!same_offer(offers[static_cast<size_t>(parent.self)], offer)) {
    leave_unmade();
    return error(IBCOLL_ERR_BOOTSTRAP,
                 "rank {}: the exchange for a new team does not return this rank's own bytes in their place, {}; it "
                 "gathers in the order of the list",
                 job_rank, parent.self);
  }
  for (const WindowOffer& o : offers) last_number_ = std::max(last_number_, o.number);
  if (!handle) return std::unique_ptr<TeamHandle>();
  handle->team->members().set_number(last_number_);
  shares = offers[0].shares;
  // The same on all ranks, as they choose their algorithms by it.
  const bool may_copy = std::none_of(offers.begin(), offers.end(), [](const WindowOffer& o) { return o.refused != 0; });
  const Placement& placement = handle->team->members().placement();
  const int leader = members[static_cast<size_t>(placement.leader_of(placement.node_of(team_rank)))];
  if (Status made = complete(*handle, offers[static_cast<size_t>(leader)].offset, may_copy); !made.ok()) return made;
  return handle;
}

Result<TeamHandle*> Teams::keep(Result<std::unique_ptr<TeamHandle>> made) {
  if (!made.ok()) return made.status();
  if (!*made) return static_cast<TeamHandle*>(nullptr);
  teams_.push_back(std::move(*made));
  return teams_.back().get();
}

Result<std::unique_ptr<TeamHandle>> Teams::make_world(const Members& all, int rank, const Gather& gather,
                                                      uint64_t& shares) {
  return form(/*epoch=*/1, all, {all.ranks, rank}, gather, shares);
}

Result<TeamHandle*> Teams::make(TeamHandle& parent, const Members& members, uint64_t epoch, ContextLock::Guard& guard) {
  Team& from = *parent.team;
  if (from.refuses()) return from.refusal();
  const auto all = [&](ConstBytes mine, Bytes theirs) { return calls_.exchange(parent, mine, theirs, guard); };
  uint64_t nothing = 0;
  return keep(progress_.or_fail(from, [&] {
    return form(epoch, members, {from.members().placement().job_ranks(), from.rank()}, all, nothing);
  }));
}

Result<TeamHandle*> Teams::make_by_members(const std::vector<int>& jobs, int self, Status refusal, uint64_t epoch,
                                           const Gather& gather) {
  Members members{{}, true, std::move(refusal)};
  try_twice([&] { members.ranks.resize(jobs.size()); });
  std::iota(members.ranks.begin(), members.ranks.end(), 0);
  uint64_t nothing = 0;
  return keep(form(epoch, members, {jobs, self}, gather, nothing));
}

void Teams::free(TeamHandle& team) {
  std::list<LeftWindow> window = std::move(team.shared_window);
  const bool failed = !team.team->failure().ok();
  std::erase_if(teams_, [&](const auto& handle) { return handle.get() == &team; });
  windows_.leave(std::move(window), failed);
}

Status TeamHandle::may_end(const char* call) {
  if (context->agreement().waits_for(*this))
    return error(IBCOLL_ERR_BUSY, "{}: another thread of this rank waits in an agreement of the team", call);
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

}  // namespace ibcoll
