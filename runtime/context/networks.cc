// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/networks.h"

#include <algorithm>

namespace ibcoll {

HostAddresses HostAddresses::of(uint64_t host, const std::vector<Interface>& interfaces) {
  HostAddresses result;
  result.host = host;
  for (const Interface& interface : interfaces)
    if (result.count < kMost && may_join_hosts(interface)) result.addresses[result.count++] = ip_of(interface.address);
  return result;
}

Networks::Networks(std::vector<HostAddresses> ranks) : ranks_(std::move(ranks)) {
  for (const HostAddresses& rank : ranks_)
    for (const IpAddress& address : rank.list()) addresses_.push_back({rank.host, address});
  std::sort(addresses_.begin(), addresses_.end());
  addresses_.erase(std::unique(addresses_.begin(), addresses_.end()), addresses_.end());
}

std::vector<std::byte> Networks::ways_from(int rank, const Routes& routes) {
  const uint64_t own = ranks_[static_cast<size_t>(rank)].host;
  std::vector<std::byte> ways(way_bytes());
  for (size_t i = 0; i < addresses_.size(); ++i) {
    Route route{Way::kDirect, 0};
    if (addresses_[i].host != own) {
      route = routes.to(addresses_[i].address);
      if (route.way >= Way::kRouted) sources_.push_back(route.interface);
    }
    ways[i / 4] |= static_cast<std::byte>(route.way) << (i % 4 * 2);
  }
  std::sort(sources_.begin(), sources_.end());
  sources_.erase(std::unique(sources_.begin(), sources_.end()), sources_.end());
  return ways;
}

Way Networks::way(std::span<const std::byte> ways, size_t address) const {
  return static_cast<Way>(ways[address / 4] >> (address % 4 * 2) & std::byte{3});
}

std::vector<ReachedAddress> Networks::reached(int rank, std::span<const std::byte> all,
                                              const std::vector<Interface>& interfaces) const {
  const HostAddresses& own = ranks_[static_cast<size_t>(rank)];
  const auto is_source = [&](unsigned interface) {
    return std::binary_search(sources_.begin(), sources_.end(), interface);
  };
  std::vector<ReachedAddress> reached;
  for (const Interface& interface : interfaces) {
    ReachedAddress address{ip_of(interface.address), Way::kDirect, -1, true};
    const auto at = std::lower_bound(addresses_.begin(), addresses_.end(), HostAddress{own.host, address.address});
    if (at == addresses_.end() || *at != HostAddress{own.host, address.address}) continue;
    for (size_t other = 0; other < ranks_.size(); ++other) {
      if (ranks_[other].host == own.host) continue;
      const Way seen = way(all.subspan(other * way_bytes()), static_cast<size_t>(at - addresses_.begin()));
      if (address.worst_rank >= 0 && seen >= address.way) continue;
      address.way = seen;
      address.worst_rank = static_cast<int>(other);
    }
    address.is_source = address.worst_rank < 0 || is_source(interface.index) || is_source(0);
    reached.push_back(address);
  }
  return reached;
}

}  // namespace ibcoll
