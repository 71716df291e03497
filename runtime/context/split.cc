// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/split.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include "bootstrap/bootstrap.h"
#include "runtime/base/hash.h"
#include "runtime/context/context.h"

namespace ibcoll {
namespace {

// Teams of one parent are made in the same order on all its ranks, so a digest of (parent, number of teams before,
// color) names a team on all ranks without a message.
uint64_t child_epoch(TeamMembers& parent, int color) {
  return Digest().add(parent.epoch()).add(parent.number_next_child()).add(static_cast<uint32_t>(color)).value();
}

// Named by an id of the host, which teams without a common member may share, and by the members.
uint64_t epoch_of(uint64_t id, const std::vector<int>& jobs) {
  Digest digest;
  digest.add("by members").add(id);
  for (const int job : jobs) digest.add(static_cast<uint64_t>(job));
  return digest.value();
}

Status check_ranks(const char* call, const int* ranks, int count, int parent_size) {
  if (count < 1)
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "{}: count is {}, a team has at least one rank", call, count);
  if (!ranks) return error(IBCOLL_ERR_INVALID_ARGUMENT, "{}: ranks is NULL", call);
  std::vector<bool> seen(static_cast<size_t>(parent_size));
  for (int i = 0; i < count; ++i) {
    if (ranks[i] < 0 || ranks[i] >= parent_size)
      return error(IBCOLL_ERR_INVALID_ARGUMENT, "{}: ranks[{}] is {}, the parent has ranks 0 to {}", call, i, ranks[i],
                   parent_size - 1);
    if (seen[static_cast<size_t>(ranks[i])])
      return error(IBCOLL_ERR_INVALID_ARGUMENT, "{}: rank {} is listed twice", call, ranks[i]);
    seen[static_cast<size_t>(ranks[i])] = true;
  }
  return {};
}

}  // namespace

Result<TeamHandle*> create_team(TeamHandle& parent, const int* ranks, int count, ContextLock::Guard& guard) {
  Teams::Members members;
  members.refusal = or_no_memory([&]() -> Status {
    if (Status checked = check_ranks("ibcoll_team_create", ranks, count, parent.team->size()); !checked.ok())
      return checked;
    members.ranks.assign(ranks, ranks + count);
    return {};
  });
  return parent.context->teams().make(parent, members, child_epoch(parent.team->members(), 0), guard);
}

// The exchange of the host, without the lock. The host knows the number of members, and a wrong list may not: there is
// room for all ranks of the job.
Result<TeamHandle*> create_team_of(Context& context, const ibcoll_members_t& members, ContextLock::Guard& guard) {
  const char* const call = "ibcoll_team_create_by_members";
  if (!members.allgather) return error(IBCOLL_ERR_INVALID_ARGUMENT, "{}: allgather is NULL", call);
  Status refusal;
  std::vector<int> jobs;
  std::vector<std::byte> gathered;  // of as many members as there can be
  try_twice([&] {
    refusal = check_ranks(call, members.ranks, members.count, context.size());
    if (refusal.ok()) jobs.assign(members.ranks, members.ranks + members.count);
    gathered.resize(Teams::kOfferBytes * static_cast<size_t>(context.size()));
  });
  const auto found = std::find(jobs.begin(), jobs.end(), context.rank());
  if (refusal.ok() && found == jobs.end())
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "{}: rank {} calls, but is not in the list", call, context.rank());
  const auto self = static_cast<int>(found - jobs.begin());
  const auto exchange = [&](ConstBytes mine, Bytes all) -> Status {
    const struct Unlocked {
      explicit Unlocked(ContextLock::Guard& guard) : guard(guard) { guard.unlock(); }
      Unlocked(const Unlocked&) = delete;
      Unlocked& operator=(const Unlocked&) = delete;
      ~Unlocked() { guard.lock(); }
      ContextLock::Guard& guard;
    } unlocked(guard);
    const Bytes room = Bytes(gathered).first(mine.size() * static_cast<size_t>(context.size()));
    if (!refusal.ok()) {
      (void)members.allgather(members.user, mine.data(), room.data(), mine.size());
      return {};
    }
    Status status = gather_by_host({members.allgather, members.user}, mine, room);
    std::memcpy(all.data(), room.data(), all.size());
    return status;
  };
  const Teams::Gather gather = try_twice([&]() -> Teams::Gather { return exchange; });
  return context.teams().make_by_members(jobs, self, refusal, epoch_of(members.id, jobs), gather);
}

Result<TeamHandle*> split_team(TeamHandle& parent, int color, int key, ContextLock::Guard& guard) {
  struct Choice {
    int32_t color;
    int32_t key;
  };
  const Choice mine{color, key};
  std::vector<Choice> all;
  const Status room = parent.context->progress().or_fail(*parent.team, [&]() -> Status {
    all.resize(static_cast<size_t>(parent.team->size()));
    return {};
  });
  if (!room.ok()) return room;
  if (Status status = parent.context->calls().exchange(parent, std::as_bytes(std::span(&mine, 1)),
                                                       std::as_writable_bytes(std::span(all)), guard);
      !status.ok())
    return status;
  const auto choice = [&](int rank) { return all[static_cast<size_t>(rank)]; };
  Teams::Members members{{}, /*same_everywhere=*/false};
  members.refusal = or_no_memory([&]() -> Status {
    std::vector<int> ranks(all.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    std::erase_if(ranks, [&](int rank) { return color < 0 || choice(rank).color != color; });
    std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) { return choice(a).key < choice(b).key; });
    members.ranks = std::move(ranks);
    return {};
  });
  return parent.context->teams().make(parent, members, child_epoch(parent.team->members(), color), guard);
}

}  // namespace ibcoll
