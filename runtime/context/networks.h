// SPDX-License-Identifier: BSD-3-Clause
// Which addresses of the hosts of a job join these. A host may have interfaces that lead nowhere (a management
// controller, containers, virtual machines), some with the same address on every host. Each rank lists its addresses;
// then each rank publishes how its kernel would reach each address of the other hosts. An address that some host does
// not reach is left out.
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

  // The addresses of the first kMost interfaces that may join hosts.
  static HostAddresses of(uint64_t host, const std::vector<Interface>& interfaces);
  std::span<const IpAddress> list() const { return std::span(addresses).first(count < kMost ? count : kMost); }

  uint64_t host = 0;  // ranks with the same have the same interfaces and routes
  uint32_t count = 0;
  IpAddress addresses[kMost] = {};
};

class Networks {
 public:
  // By rank. The result is the same on all ranks.
  explicit Networks(std::vector<HostAddresses> ranks);

  // How this rank reaches each address, two bits for each; the length is the same on all ranks.
  std::vector<std::byte> ways_from(int rank, const Routes& routes);
  size_t way_bytes() const { return (addresses_.size() + 3) / 4; }
  // `all`: the ways_from() of all ranks, in rank order. After that of this rank.
  std::vector<ReachedAddress> reached(int rank, std::span<const std::byte> all,
                                      const std::vector<Interface>& interfaces) const;

 private:
  struct HostAddress {
    uint64_t host = 0;
    IpAddress address{};
    friend auto operator<=>(const HostAddress&, const HostAddress&) = default;
  };
  Way way(std::span<const std::byte> ways, size_t address) const;

  std::vector<HostAddresses> ranks_;
  std::vector<HostAddress> addresses_;  // sorted, each once
  std::vector<unsigned> sources_;       // interfaces by which packets to other hosts leave this one; 0 in it: not known
};

}  // namespace ibcoll
