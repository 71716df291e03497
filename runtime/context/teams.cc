// SPDX-License-Identifier: BSD-3-Clause
// Making and freeing teams: the members, their nodes, and the window that the members on one node share.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/base/float_environment.h"
#include "runtime/base/hash.h"
#include "runtime/collectives/framework/registry.h"
#include "runtime/context/context.h"

namespace ibcoll {
namespace {

constexpr uint64_t kNoWindow = ~uint64_t{0};
// Checked in each call: there may be thousands, and each check may be a system call.
constexpr size_t kFewWindows = 4;

// What each rank contributes to the exchange for a new team; the leader of a node also the window that it made.
struct WindowOffer {
  uint64_t offset = kNoWindow;
  int32_t code = IBCOLL_OK;
  uint32_t members = 0;  // digest of the team's name and the list that this rank was called with; 0: nothing came
  uint32_t refused = 0;  // not 0: the kernel has refused this rank the use of another's memory, since the start
  uint32_t number = 0;   // above that of each team of this rank; the team gets the highest one
  uint64_t tuning = 0;   // bytes of what rank 0 has read and will send to all
};

static_assert(sizeof(WindowOffer) <= Context::kOfferBytes);

uint32_t digest_of(uint64_t epoch, const std::vector<int>& members, const std::vector<int>& jobs) {
  Digest digest;
  digest.add(epoch);
  for (const int member : members) digest.add(static_cast<uint64_t>(jobs[static_cast<size_t>(member)]));
  return digest.folded() | 1;
}

bool same_offer(const WindowOffer& a, const WindowOffer& b) {
  return a.offset == b.offset && a.code == b.code && a.members == b.members && a.refused == b.refused &&
         a.number == b.number && a.tuning == b.tuning;
}

// Ok, or why the ranks of the parent cannot make the team.
Status judge(const std::vector<WindowOffer>& offers, const WindowOffer& mine, const Context::Members& members,
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

Status Context::allocate_window(uint64_t tag, int locals, uint64_t& offset) {
  const uint64_t bytes = WindowMemory::footprint(locals, area_bytes_);
  Result<uint64_t> made = job_.memory->allocate(bytes);
  if (!made.ok()) {
    give_back_windows(left_windows_.size());
    made = job_.memory->allocate(bytes);
  }
  if (!made.ok()) return made.status();
  Status status = WindowMemory::prepare(*job_.memory, *made, tag, locals, area_bytes_);
  if (status.ok())
    offset = *made;
  else
    job_.memory->release(*made, bytes);
  return status;
}

Status Context::allocate_lone_window(LoneWindow& window) const {
  Result<void*> made = allocate_memory(WindowMemory::footprint(1, area_bytes_));
  if (!made.ok())
    return error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory for the node window of a new team: {}", rank(),
                 made.status().text());
  window.reset(static_cast<std::byte*>(*made));
  return {};
}

std::unique_ptr<TeamHandle> Context::draft_team(uint64_t epoch, std::vector<int> members, int team_rank) {
  auto handle = std::make_unique<TeamHandle>();
  handle->context = this;
  Placement placement(std::move(members), job_.nodes);
  const std::span<const int> locals = placement.ranks_of(placement.node_of(team_rank));
  handle->shape.p = placement.size();
  handle->shape.nodes = placement.node_count();
  handle->shape.fewest_local = placement.fewest_local();
  handle->shape.most_local = placement.most_local();
  handle->shape.nodes_in_rank_order = placement.in_rank_order();
  if (placement.most_local() > 1) handle->shape.area_bytes = area_bytes_;
  std::unique_ptr<NodeWindow> window;
  if (placement.most_local() > 1) {
    std::vector<int> jobs;
    for (const int i : locals) jobs.push_back(placement.job_rank(i));
    const auto self = static_cast<int>(std::find(locals.begin(), locals.end(), team_rank) - locals.begin());
    const bool shared = locals.size() > 1;
    if (shared) {
      handle->shape.crowded = placement.node_count() == 1 && job_.ranks_per_core > 1;
      handle->shared_window.push_back({{kNoWindow, epoch, jobs, self, area_bytes_}});
    }
    window = std::make_unique<NodeWindow>(shared ? job_.memory.get() : nullptr, area_bytes_, std::move(jobs), self,
                                          shared && job_.ranks_per_core > 1);
    if (shared && doorbell_) window->use(*doorbell_, job_.shm->locals(handle->shared_window.front().place.jobs));
  }
  handle->team = std::make_unique<Team>(*engine_, epoch, std::move(placement), team_rank, std::move(window));
  return handle;
}

Status Context::complete_team(TeamHandle& handle, uint64_t offset, bool may_copy) {
  const DefaultFloatEnvironment alike_on_all_ranks;
  Team& team = *handle.team;
  NodeWindow* const window = team.window();
  if (handle.shared_window.empty()) {
    fill_models(handle);
    if (window) window->place(handle.lone_window.get(), 0, {});
    return {};
  }
  WindowLocation& place = handle.shared_window.front().place;
  place.offset = offset;
  handle.shape.single_copy = may_copy && handle.shape.nodes == 1 && job_.shm->all_may_copy(place.jobs);
  fill_models(handle);
  const CostModel& model = handle.model;
  const int p = window->size();
  const NodeWindow::Limits limits{model.read_from(p), model.stream_from(p, area_bytes_),
                                  static_cast<uint64_t>(model.leaves_caches(p))};
  Result<std::byte*> base = job_.memory->at(offset, WindowMemory::footprint(p, area_bytes_));
  Status entered = base.ok() ? WindowPresence::enter(*job_.memory, place) : base.status();
  if (!entered.ok()) {
    leave_window(std::move(handle.shared_window), true);
    team.fail(entered);  // the other ranks have made the team: they get the error
    return entered;
  }
  window->place(*base, offset, limits);
  if (team.refuses()) window->presence().report_failure(team.failure().code());  // it has failed meanwhile
  return {};
}

// The team could not be made. This rank may not know where its window is (kNoWindow): the leader of the node may have
// died before it sent that.
void Context::leave_unmade_window(TeamHandle& team, uint64_t offset) {
  if (team.shared_window.empty()) return;
  WindowLocation& place = team.shared_window.front().place;
  place.offset = offset != kNoWindow ? offset : job_.memory->allocated_last(place.jobs.front());
  if (place.offset != NodeMemory::kNowhere) leave_window(std::move(team.shared_window), true);
}

// All memory of a team is allocated before the ranks agree on it: if a rank has none, no rank gets the team.
Result<std::unique_ptr<TeamHandle>> Context::form_team(uint64_t epoch, const Members& wanted,
                                                       const std::vector<int>& parent_jobs, int self,
                                                       const Gather& gather) {
  give_back_windows(kFewWindows);
  std::vector<WindowOffer> offers;
  try_twice([&] { offers.resize(parent_jobs.size()); });
  const std::vector<int>& members = wanted.ranks;
  const auto found = std::find(members.begin(), members.end(), self);
  const bool member = found != members.end();
  const auto team_rank = static_cast<int>(found - members.begin());
  std::unique_ptr<TeamHandle> handle;
  WindowOffer offer;
  offer.members = digest_of(epoch, members, parent_jobs);
  offer.refused = job_.shm && job_.shm->any_refused();
  offer.number = last_number_ + 1;
  offer.tuning = tuning_text_.size();
  Status mine = wanted.refusal;
  if (member && mine.ok())
    mine = or_no_memory([&]() -> Status {
      make_room_for_team();
      std::vector<int> jobs;
      jobs.reserve(members.size());
      for (const int r : members) jobs.push_back(parent_jobs[static_cast<size_t>(r)]);
      handle = draft_team(epoch, std::move(jobs), team_rank);
      const bool lone = handle->shared_window.empty();
      if (lone && handle->team->window()) return allocate_lone_window(handle->lone_window);
      if (lone || handle->shared_window.front().place.rank != 0) return {};
      return allocate_window(epoch, handle->team->window()->size(), offer.offset);
    });
  if (!mine.ok()) {
    offer.code = mine.code();
    handle.reset();
  }
  if (Status status = gather(std::as_bytes(std::span(&offer, 1)), std::as_writable_bytes(std::span(offers)));
      !status.ok()) {
    if (handle) leave_unmade_window(*handle, offer.offset);
    return status;
  }
  if (!mine.ok()) return mine;
  if (Status refused = judge(offers, offer, wanted, parent_jobs, rank()); !refused.ok()) {
    if (offer.offset != kNoWindow)
      job_.memory->release(offer.offset, WindowMemory::footprint(handle->team->window()->size(), area_bytes_));
    return refused;
  }
  if (!same_offer(offers[static_cast<size_t>(self)], offer)) {
    if (handle) leave_unmade_window(*handle, offer.offset);
    return error(IBCOLL_ERR_BOOTSTRAP,
                 "rank {}: the exchange for a new team does not return this rank's own bytes in their place, {}; it "
                 "gathers in the order of the list",
                 rank(), self);
  }
  for (const WindowOffer& o : offers) last_number_ = std::max(last_number_, o.number);
  if (!handle) return std::unique_ptr<TeamHandle>();
  handle->team->set_number(last_number_);
  tuning_bytes_ = offers[0].tuning;
  // The same on all ranks, as they choose their algorithms by it.
  const bool may_copy = std::none_of(offers.begin(), offers.end(), [](const WindowOffer& o) { return o.refused != 0; });
  const Placement& placement = handle->team->placement();
  const int leader = members[static_cast<size_t>(placement.leader_of(placement.node_of(team_rank)))];
  if (Status made = complete_team(*handle, offers[static_cast<size_t>(leader)].offset, may_copy); !made.ok())
    return made;
  return handle;
}

// Doubles the room, so that not every new team moves the list.
void Context::make_room_for_team() {
  if (teams_.size() == teams_.capacity()) teams_.reserve(std::max<size_t>(8, 2 * teams_.size()));
}

Result<TeamHandle*> Context::keep_team(Result<std::unique_ptr<TeamHandle>> made) {
  if (!made.ok()) return made.status();
  if (!*made) return static_cast<TeamHandle*>(nullptr);
  teams_.push_back(std::move(*made));
  return teams_.back().get();
}

Result<TeamHandle*> Context::make_team(TeamHandle& parent, const Members& members, uint64_t epoch,
                                       std::unique_lock<std::mutex>& guard) {
  Team& from = *parent.team;
  if (from.refuses()) return from.refusal();
  const auto all = [&](ConstBytes mine, Bytes theirs) { return exchange(parent, mine, theirs, guard); };
  return keep_team(
      or_fail(parent, [&] { return form_team(epoch, members, from.placement().job_ranks(), from.rank(), all); }));
}

Result<TeamHandle*> Context::make_team_of_members(const std::vector<int>& jobs, int self, Status refusal,
                                                  uint64_t epoch, const Gather& gather) {
  Members members{{}, true, std::move(refusal)};
  try_twice([&] { members.ranks.resize(jobs.size()); });
  std::iota(members.ranks.begin(), members.ranks.end(), 0);
  return keep_team(form_team(epoch, members, jobs, self, gather));
}

void Context::free_team(TeamHandle& team) {
  std::list<LeftWindow> window = std::move(team.shared_window);
  const bool failed = !team.team->failure().ok();
  std::erase_if(teams_, [&](const auto& handle) { return handle.get() == &team; });
  leave_window(std::move(window), failed);
}

void Context::leave_window(std::list<LeftWindow> window, bool failed) noexcept {
  if (!window.empty()) window.front().failed = failed;
  left_windows_.splice(left_windows_.begin(), window);
  give_back_windows(kFewWindows);
}

// Ranks that die do not free their teams; the others notice that later.
void Context::give_back_windows(size_t most) noexcept {
  for (most = std::min(most, left_windows_.size()); most > 0; --most) {
    const LeftWindow& window = left_windows_.front();
    if (WindowPresence::leave(*job_.memory, window.place, window.failed))
      left_windows_.pop_front();
    else
      left_windows_.splice(left_windows_.end(), left_windows_, left_windows_.begin());
  }
}

Status Context::exchange(TeamHandle& team, ConstBytes mine, Bytes all, std::unique_lock<std::mutex>& guard) {
  std::vector<std::byte> buffers;
  const Status room = or_fail(team, [&]() -> Status {
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
