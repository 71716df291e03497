// SPDX-License-Identifier: BSD-3-Clause
// Which of the ports and addresses that there are.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <tuple>

#include "runtime/base/subnet.h"
#include "runtime/machine/private_address.h"
#include "runtime/verbs/devices.h"

namespace ibcoll::verbs {
namespace {

bool is_link_local(const Gid& gid) { return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80; }

bool is_private(const Gid& gid) {
  in6_addr address;
  static_assert(sizeof address == sizeof gid);
  std::memcpy(&address, gid.data(), sizeof address);
  return ibcoll::is_private(address);
}

int preference(const GidEntry& gid) {
  return (gid.type == GidEntry::Type::kRoceV2 ? 4 : 0) + (is_ipv4(gid.gid) ? 2 : 0) + (is_link_local(gid.gid) ? 0 : 1);
}

std::string gid_list(const Port& port) {
  std::string text;
  for (const GidEntry& gid : port.gids) text += (text.empty() ? "" : ", ") + gid_entry_text(gid);
  return text.empty() ? "none" : text;
}

Status take_gid(PortChoice& choice, const GidEntry& gid, const char* why) {
  choice.gid_index = gid.index;
  choice.gid = gid.gid;
  choice.reasons.push_back(fmt::format("GID {}: {}", gid_entry_text(gid), why));
  return {};
}

Status choose_gid(const Config& config, PortChoice& choice) {
  const Port& port = choice.port;
  const std::string& wanted = config.text("IBCOLL_VERBS_GID");
  const bool automatic = wanted == "auto";
  const std::optional<Subnet> subnet = parse_subnet(wanted);
  choice.global = port.ethernet || port.needs_gid || !automatic;
  if (!choice.global) return {};
  const bool public_allowed = config.boolean("IBCOLL_ALLOW_PUBLIC");
  const GidEntry* best = nullptr;
  std::string refused;
  const bool by_index = !automatic && !subnet;
  for (const GidEntry& gid : port.gids) {
    if (by_index && std::to_string(gid.index) != wanted) continue;
    if (subnet && !subnet->contains(gid.gid)) continue;
    if (port.ethernet && !is_private(gid.gid) && !public_allowed) {
      refused = gid_text(gid.gid);
      continue;
    }
    if (best == nullptr || preference(gid) > preference(*best)) best = &gid;
  }
  if (best)
    return take_gid(choice, *best,
                    by_index ? "by IBCOLL_VERBS_GID"
                    : subnet ? "in the subnet of IBCOLL_VERBS_GID"
                             : "the preferred one");
  if (!refused.empty())
    return error(IBCOLL_ERR_CONFIG, "{}:{}: the address {} is public; IBCOLL_ALLOW_PUBLIC=yes permits it", port.device,
                 port.number, refused);
  return error(IBCOLL_ERR_CONFIG, "{}:{}: IBCOLL_VERBS_GID={} fits none of its GIDs: {}", port.device, port.number,
               wanted, gid_list(port));
}

Status choose_windows(const Config& config, PortChoice& choice) {
  const Port& port = choice.port;
  const std::string& wanted = config.text("IBCOLL_VERBS_WINDOWS");
  if (wanted == "on" && !port.windows)
    return error(IBCOLL_ERR_CONFIG,
                 "{}:{}: IBCOLL_VERBS_WINDOWS=on, but the device has no memory windows of type 2B; use auto or off",
                 port.device, port.number);
  choice.opens_windows = wanted == "on" || (wanted == "auto" && port.windows && port.good_windows);
  return {};
}

std::string port_list(const std::vector<Port>& ports) {
  std::string text;
  for (const Port& port : ports)
    text += fmt::format("{}{}:{} ({}{}{})", text.empty() ? "" : ", ", port.device, port.number, port.state,
                        port.unfit.empty() ? "" : ", ", port.unfit);
  return text;
}

std::tuple<bool, bool, double> rank_of(const Port& port) { return {!port.ethernet, port.near, port.gigabits}; }

}  // namespace

Result<PortChoice> choose_port(const Config& config, const std::vector<Port>& ports) {
  if (ports.empty())
    return error(IBCOLL_ERR_UNSUPPORTED,
                 "this machine has no RDMA device (ibv_devices lists none; is the driver loaded?); ibcoll_run "
                 "--rdma-in-memory brings one");
  const std::string& wanted = config.text("IBCOLL_VERBS_DEVICE");
  PortChoice choice;
  const Port* best = nullptr;
  std::vector<Port> named;
  for (const Port& port : ports) {
    const bool fits =
        wanted.empty() || wanted == port.device || wanted == fmt::format("{}:{}", port.device, port.number);
    if (fits) named.push_back(port);
    std::string reason = "a candidate";
    if (!fits)
      reason = "not the one of IBCOLL_VERBS_DEVICE";
    else if (!port.unfit.empty())
      reason = port.unfit;
    else if (!port.active)
      reason = "not active";
    else if (best == nullptr || rank_of(port) > rank_of(*best))
      best = &port;
    choice.reasons.push_back(fmt::format("{}:{}: {}, {}, {} Gbit/s{}: {}", port.device, port.number, port.state,
                                         port.ethernet ? "RoCE" : fmt::format("LID {}", port.lid), port.gigabits,
                                         port.near ? "" : ", far from this process", reason));
  }
  if (named.empty())
    return error(IBCOLL_ERR_CONFIG, "IBCOLL_VERBS_DEVICE={}: there is no such device or port; there are: {}", wanted,
                 port_list(ports));
  if (best == nullptr) {
    const auto is_down = [](const Port& port) { return port.unfit.empty(); };
    const auto may_recover = [&](const Port& port) { return is_down(port) || port.closed; };
    const bool hopeless = wanted.empty() && std::none_of(named.begin(), named.end(), may_recover);
    const bool down = std::any_of(named.begin(), named.end(), is_down);
    return error(hopeless ? IBCOLL_ERR_UNSUPPORTED : IBCOLL_ERR_CONFIG, "{}no RDMA port can be used: {}{}",
                 wanted.empty() ? "" : fmt::format("IBCOLL_VERBS_DEVICE={}: ", wanted), port_list(named),
                 down ? "; check the cable, the subnet manager or `ip link`" : "");
  }
  choice.port = *best;
  choice.reasons.push_back(fmt::format("{}:{} is used", best->device, best->number));
  if (Status status = choose_gid(config, choice); !status.ok()) return status;
  if (Status status = choose_windows(config, choice); !status.ok()) return status;
  return choice;
}

}  // namespace ibcoll::verbs
