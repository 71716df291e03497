// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/placement.h"

#include <algorithm>

#include "bootstrap/rendezvous_protocol.h"

namespace ibcoll::run {

std::vector<int> split_evenly(int total, int parts) {
  std::vector<int> sizes(static_cast<size_t>(parts), total / parts);
  std::for_each_n(sizes.begin(), total % parts, [](int& size) { ++size; });
  return sizes;
}

Result<std::vector<HostRanks>> place_on_hosts(const std::vector<HostEntry>& hosts, std::optional<int> ranks) {
  int64_t all_slots = 0;
  int open_hosts = 0;  // hosts that do not say how many ranks they take
  for (const HostEntry& host : hosts) {
    all_slots += host.slots.value_or(0);
    open_hosts += host.slots ? 0 : 1;
  }
  if (!ranks && all_slots + open_hosts > rendezvous::kMaxRanks)
    return error(IBCOLL_ERR_INVALID_ARGUMENT,
                 "the hosts offer {} slots, and a job has {} ranks at most; say how many by -n", all_slots,
                 rendezvous::kMaxRanks);
  const auto slots = static_cast<int>(std::min<int64_t>(all_slots, rendezvous::kMaxRanks));
  if (ranks && *ranks > slots && open_hosts == 0) {
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "-n {}: the hosts offer {} slots; give them more, as in --host {}:{}",
                 *ranks, slots, hosts.front().name, *ranks);
  }
  const std::vector<int> shares =
      split_evenly(ranks ? std::max(0, *ranks - slots) : open_hosts, std::max(1, open_hosts));
  std::vector<HostRanks> placed;
  size_t next_share = 0;
  int first = 0;
  int left = ranks.value_or(slots + open_hosts);
  for (const HostEntry& host : hosts) {
    const int count = std::min(left, host.slots ? *host.slots : shares[next_share++]);
    if (count == 0) continue;
    placed.push_back({host.name, first, count});
    first += count;
    left -= count;
  }
  return placed;
}

Result<std::vector<std::string>> emulated_nodes(int ranks, int nodes) {
  if (nodes > ranks) {
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "--nodes {}: there are only {} ranks; each node needs one", nodes, ranks);
  }
  std::vector<std::string> texts;
  int node = 0;
  for (const int size : split_evenly(ranks, nodes)) {
    texts.insert(texts.end(), static_cast<size_t>(size), fmt::format("emulated-{}", node++));
  }
  return texts;
}

}  // namespace ibcoll::run
