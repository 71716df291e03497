// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/routes.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace ibcoll {
namespace {

constexpr IpAddress kMappedIpv4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr Route kNotKnown{Way::kRouted, 0};

struct RouteQuery {
  nlmsghdr header{};
  rtmsg route{};
  rtattr attribute{};
  std::array<uint8_t, 16> address{};
};

RouteQuery request_for(const IpAddress& address) {
  const bool ipv4 = std::equal(address.begin(), address.begin() + 12, kMappedIpv4.begin());
  const size_t bytes = ipv4 ? 4 : 16;
  RouteQuery request;
  request.header.nlmsg_len = static_cast<uint32_t>(offsetof(RouteQuery, address) + bytes);
  request.header.nlmsg_type = RTM_GETROUTE;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.route.rtm_family = ipv4 ? AF_INET : AF_INET6;
  request.route.rtm_dst_len = static_cast<uint8_t>(8 * bytes);
  request.attribute.rta_type = RTA_DST;
  request.attribute.rta_len = static_cast<uint16_t>(RTA_LENGTH(bytes));
  std::memcpy(request.address.data(), address.data() + 16 - bytes, bytes);
  return request;
}

Route route_in(const nlmsghdr& header) {
  const auto* const about = static_cast<const rtmsg*>(NLMSG_DATA(&header));
  if (about->rtm_type == RTN_LOCAL) return {Way::kOwn, 0};
  if (about->rtm_type != RTN_UNICAST || (about->rtm_flags & (RTNH_F_DEAD | RTNH_F_LINKDOWN)) != 0) return {};
  Route route{Way::kDirect, 0};
  auto left = static_cast<int>(RTM_PAYLOAD(&header));
  for (const rtattr* it = RTM_RTA(about); RTA_OK(it, left); it = RTA_NEXT(it, left)) {
    if (it->rta_type == RTA_GATEWAY || it->rta_type == RTA_VIA) route.way = Way::kRouted;
    if (it->rta_type == RTA_OIF) std::memcpy(&route.interface, RTA_DATA(it), sizeof route.interface);
  }
  return route;
}

// A route that is not there is an answer; anything else that went wrong says nothing about the address.
bool means_no_route(int error) {
  return error == ENETUNREACH || error == EHOSTUNREACH || error == EACCES || error == EINVAL || error == ENETDOWN;
}

}  // namespace

Routes Routes::open() { return Routes(UniqueFd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE))); }

Route Routes::to(const IpAddress& address) const {
  const RouteQuery request = request_for(address);
  if (!socket_ || ::send(socket_.get(), &request, request.header.nlmsg_len, 0) < 0) return kNotKnown;
  alignas(nlmsghdr) std::array<char, 4096> answer;
  // The kernel has answered when send() returns.
  const ssize_t bytes = ::recv(socket_.get(), answer.data(), answer.size(), MSG_DONTWAIT);
  const auto* const header = reinterpret_cast<const nlmsghdr*>(answer.data());
  if (bytes < 0 || !NLMSG_OK(header, static_cast<size_t>(bytes))) return kNotKnown;
  if (header->nlmsg_type == RTM_NEWROUTE) return route_in(*header);
  if (header->nlmsg_type != NLMSG_ERROR) return kNotKnown;
  const int error = -static_cast<const nlmsgerr*>(NLMSG_DATA(header))->error;
  return means_no_route(error) ? Route() : kNotKnown;
}

}  // namespace ibcoll
