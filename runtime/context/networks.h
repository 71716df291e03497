// SPDX-License-Identifier: BSD-3-Clause
// Which addresses of the hosts of a job join these. A host may have interfaces that lead nowhere (a management
// controller, containers, virtual machines), some with the same address on every host. Each rank lists its addresses;
// then each rank says of the addresses of all other hosts how its kernel would reach them. An address that some host
// does not reach is left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/machine/interfaces.h"
#include "runtime/machine/routes.h"
#include "runtime/transport/network_transport.h"

namespace ibcoll {

// One rank's host and addresses.
struct HostAddresses {
  static constexpr size_t kMost = 16;

  // Of the interfaces that may join hosts, the first kMost.
  static HostAddresses of(uint64_t host, const std::vector<Interface>& interfaces);
  std::span<const IpAddress> list() const { return std::span(addresses).first(count < kMost ? count : kMost); }

  uint64_t host = 0;  // ranks with the same have the same interfaces and routes
  uint32_t count = 0;
  IpAddress addresses[kMost] = {};
};

class Networks {
 public:
  // By rank. Makes the same of it on all ranks.
  explicit Networks(std::vector<HostAddresses> ranks);

  // What this rank says of all addresses, and the length that this has on all ranks: two bits for each address.
  std::vector<std::byte> ways_from(int rank, const Routes& routes);
  size_t way_bytes() const { return (places_.size() + 3) / 4; }
  // `all`: what all ranks say, in rank order. After ways_from() of this rank.
  std::vector<ReachedAddress> reached(int rank, std::span<const std::byte> all,
                                      const std::vector<Interface>& interfaces) const;

 private:
  struct Place {
    uint64_t host = 0;
    IpAddress address{};
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  Way way(std::span<const std::byte> ways, size_t place) const;

  std::vector<HostAddresses> ranks_;
  std::vector<Place> places_;      // sorted, each once
  std::vector<unsigned> sources_;  // interfaces by which packets to other hosts leave this one; 0 in it: not known
};

}  // namespace ibcoll
