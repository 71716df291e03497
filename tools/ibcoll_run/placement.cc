// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/placement.h"

#include <algorithm>
#include <numeric>

#include "bootstrap/rendezvous_protocol.h"

namespace ibcoll::run {
namespace {

constexpr int kNoLimit = rendezvous::kMaxRanks;

// Gives one rank after the other to the next host below its limit: `counts` grows up to `limits`. `left`: ranks that no
// host takes.
// `dealt` gets the host of each rank.
void deal(std::vector<int>& counts, const std::vector<int>& limits, int& left, std::vector<size_t>& dealt) {
  std::vector<size_t> open(counts.size());
  std::iota(open.begin(), open.end(), size_t{0});
  while (left > 0 && !open.empty()) {
    std::erase_if(open, [&](size_t host) { return counts[host] >= limits[host]; });
    for (const size_t host : open) {
      if (left == 0) break;
      ++counts[host];
      --left;
      dealt.push_back(host);
    }
  }
}

// How many ranks each host takes before any is asked for more than it offers, and how many at most.
struct Limits {
  std::vector<int> offered;
  std::vector<int> most;
};

Limits limits_of(const std::vector<HostEntry>& hosts) {
  Limits limits;
  for (const HostEntry& host : hosts) {
    limits.most.push_back(host.max_slots.value_or(kNoLimit));
    limits.offered.push_back(host.slots.value_or(limits.most.back()));
  }
  return limits;
}

// A given number of ranks per host takes the place of the slots.
Result<std::vector<HostEntry>> with_per_host(std::vector<HostEntry> hosts, const PlacementRules& rules) {
  if (!rules.per_host) return hosts;
  const int count = *rules.per_host;
  for (HostEntry& host : hosts) {
    const int most = host.max_slots.value_or(kNoLimit);
    if (count > most)
      return error(IBCOLL_ERR_INVALID_ARGUMENT, "-N {}: host {} takes {} ranks at most (max_slots)", count, host.name,
                   most);
    if (!rules.oversubscribe && host.slots && count > *host.slots)
      return error(IBCOLL_ERR_INVALID_ARGUMENT, "-N {}: host {} offers {} slots; --oversubscribe lets it take more",
                   count, host.name, *host.slots);
    host.slots = host.max_slots = count;
  }
  return hosts;
}

Result<int> number_of_ranks(const std::vector<HostEntry>& hosts, const PlacementRules& rules) {
  int64_t offered = 0;
  for (const HostEntry& host : hosts) offered += host.slots.value_or(1);
  if (rules.ranks) return *rules.ranks;
  if (offered <= rendezvous::kMaxRanks) return static_cast<int>(offered);
  return error(IBCOLL_ERR_INVALID_ARGUMENT,
               "the hosts offer {} slots, and a job has {} ranks at most; say how many by -n", offered,
               rendezvous::kMaxRanks);
}

Status too_few(const std::vector<HostEntry>& hosts, const PlacementRules& rules, int left) {
  const int taken = *rules.ranks - left;
  if (rules.per_host) {
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "-n {}: {} hosts with {} ranks each (-N) take {}", *rules.ranks,
                 hosts.size(), *rules.per_host, taken);
  }
  if (rules.oversubscribe)
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "-n {}: the hosts take {} ranks at most (max_slots)", *rules.ranks,
                 taken);
  return error(IBCOLL_ERR_INVALID_ARGUMENT,
               "-n {}: the hosts offer {} slots; give them more, as in --host {}:{}, or say --oversubscribe",
               *rules.ranks, taken, hosts.front().name, *rules.ranks);
}

// Numbers the ranks: as they were dealt, or host by host.
std::vector<HostRanks> numbered(const std::vector<HostEntry>& hosts, const std::vector<int>& counts,
                                const std::vector<size_t>* dealt) {
  std::vector<HostRanks> placed;
  placed.reserve(hosts.size());
  for (const HostEntry& host : hosts) placed.push_back({host.name, {}});
  int next = 0;
  if (dealt != nullptr) {
    for (const size_t host : *dealt) placed[host].ranks.push_back(next++);
  } else {
    for (size_t host = 0; host < hosts.size(); ++host)
      for (int i = 0; i < counts[host]; ++i) placed[host].ranks.push_back(next++);
  }
  std::erase_if(placed, [](const HostRanks& host) { return host.ranks.empty(); });
  return placed;
}

}  // namespace

Result<std::vector<HostRanks>> place_on_hosts(const std::vector<HostEntry>& given, const PlacementRules& rules) {
  const Result<std::vector<HostEntry>> slotted = with_per_host(given, rules);
  if (!slotted.ok()) return slotted.status();
  const std::vector<HostEntry>& hosts = slotted.value();
  const Result<int> ranks = number_of_ranks(hosts, rules);
  if (!ranks.ok()) return ranks.status();
  const Limits limits = limits_of(hosts);
  std::vector<int> counts(hosts.size(), 0);
  std::vector<size_t> dealt;
  int left = ranks.value();
  if (!rules.in_turn) {
    for (size_t host = 0; host < hosts.size(); ++host) {
      if (!hosts[host].slots && rules.ranks) continue;
      counts[host] = std::min(left, hosts[host].slots.value_or(1));
      left -= counts[host];
    }
  }
  deal(counts, limits.offered, left, dealt);
  if (rules.oversubscribe) deal(counts, limits.most, left, dealt);
  if (left > 0) return too_few(hosts, rules, left);
  return numbered(hosts, counts, rules.in_turn ? &dealt : nullptr);
}

std::vector<int> split_evenly(int total, int parts) {
  std::vector<int> sizes(static_cast<size_t>(parts), total / parts);
  std::for_each_n(sizes.begin(), total % parts, [](int& size) { ++size; });
  return sizes;
}

Result<std::vector<std::string>> emulated_nodes(int ranks, int nodes, bool in_turn) {
  if (nodes > ranks) {
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "--nodes {}: there are only {} ranks; each node needs one", nodes, ranks);
  }
  std::vector<std::string> texts;
  if (in_turn) {
    for (int rank = 0; rank < ranks; ++rank) texts.push_back(fmt::format("emulated-{}", rank % nodes));
    return texts;
  }
  int node = 0;
  for (const int size : split_evenly(ranks, nodes)) {
    texts.insert(texts.end(), static_cast<size_t>(size), fmt::format("emulated-{}", node++));
  }
  return texts;
}

}  // namespace ibcoll::run
