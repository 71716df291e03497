// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/split.h"

#include <algorithm>
#include <numeric>

#include "runtime/base/hash.h"

namespace ibcoll {
namespace {

// Teams of one parent are made in the same order on all its ranks, so a digest of (parent, how many before, color)
// names a team everywhere without asking anyone.
uint64_t child_epoch(Team& parent, int color) {
  return Digest().add(parent.epoch()).add(parent.children()).add(static_cast<uint32_t>(color)).value();
}

Status check_ranks(const int* ranks, int count, int parent_size) {
  if (count < 1)
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_team_create: count is {}, a team has at least one rank", count);
  if (!ranks) return error(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_team_create: ranks is NULL");
  std::vector<bool> seen(static_cast<size_t>(parent_size));
  for (int i = 0; i < count; ++i) {
    if (ranks[i] < 0 || ranks[i] >= parent_size)
      return error(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_team_create: ranks[{}] is {}, the parent has ranks 0 to {}", i,
                   ranks[i], parent_size - 1);
    if (seen[static_cast<size_t>(ranks[i])])
      return error(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_team_create: rank {} is listed twice", ranks[i]);
    seen[static_cast<size_t>(ranks[i])] = true;
  }
  return {};
}

}  // namespace

Result<TeamHandle*> create_team(TeamHandle& parent, const int* ranks, int count, std::unique_lock<std::mutex>& guard) {
  Context::Members members;
  members.refusal = check_ranks(ranks, count, parent.team->size());
  if (members.refusal.ok()) members.ranks.assign(ranks, ranks + count);
  return parent.context->make_team(parent, members, child_epoch(*parent.team, 0), guard);
}

Result<TeamHandle*> split_team(TeamHandle& parent, int color, int key, std::unique_lock<std::mutex>& guard) {
  struct Choice {
    int32_t color;
    int32_t key;
  };
  const Choice mine{color, key};
  std::vector<Choice> all(static_cast<size_t>(parent.team->size()));
  if (Status status = parent.context->exchange(parent, std::as_bytes(std::span(&mine, 1)),
                                               std::as_writable_bytes(std::span(all)), guard);
      !status.ok())
    return status;
  std::vector<int> ranks(all.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  const auto choice = [&](int rank) { return all[static_cast<size_t>(rank)]; };
  std::erase_if(ranks, [&](int rank) { return color < 0 || choice(rank).color != color; });
  std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) { return choice(a).key < choice(b).key; });
  return parent.context->make_team(parent, {std::move(ranks), false}, child_epoch(*parent.team, color), guard);
}

}  // namespace ibcoll
