// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/verbs/addresses.h"

#include <cstring>

namespace ibcoll::verbs {

Address address_of(const PortChoice& choice) {
  Address address;
  address.gid = choice.gid;
  address.lid = choice.port.lid;
  address.mtu = static_cast<uint8_t>(choice.port.mtu);
  address.global = choice.global;
  for (const GidEntry& gid : choice.port.gids)
    if (choice.global && gid.index == choice.gid_index) address.protocol = gid.type;
  if (!choice.port.ethernet && !choice.port.gids.empty())
    std::memcpy(&address.subnet, choice.port.gids.front().gid.data(), sizeof address.subnet);
  return address;
}

Status check_reach(int rank, const Address& own, int other_rank, const Address& other) {
  const auto refused = [](std::string_view why) {
    return error(IBCOLL_ERR_CONFIG,
                 "verbs: {}; set IBCOLL_VERBS_GID and IBCOLL_VERBS_DEVICE so that all ranks use the same", why);
  };
  if (own.global != other.global)
    return refused(fmt::format("rank {} is addressed by {} and rank {} by {}", rank, own.global ? "GID" : "LID",
                               other_rank, other.global ? "GID" : "LID"));
  if (own.protocol != other.protocol)
    return refused(fmt::format("rank {} uses {} and rank {} {}", rank, protocol_text(own.protocol), other_rank,
                               protocol_text(other.protocol)));
  if (!own.global && own.subnet != other.subnet)
    return refused(fmt::format("rank {} and rank {} are on different InfiniBand subnets", rank, other_rank));
  return {};
}

}  // namespace ibcoll::verbs
