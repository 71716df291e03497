// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/ucx/devices.h"

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>

namespace ibcoll::ucx {
namespace {

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> items;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    if (end > begin) items.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

// fmt::join() would compile much of {fmt} again here.
std::string joined(std::span<const std::string> items, std::string_view separator) {
  std::string text;
  for (const std::string& item : items) {
    if (&item != &items.front()) text += separator;
    text += item;
  }
  return text;
}

bool any_of(const std::vector<std::string>& items, std::initializer_list<std::string_view> wanted) {
  return std::any_of(items.begin(), items.end(), [&](const std::string& item) {
    return std::find(wanted.begin(), wanted.end(), item) != wanted.end();
  });
}

// UCX's list syntax: names and aliases, "all", or a leading '^' for "all but these"; a name after a backslash is no
// alias, and one before ":aux" is for connecting only. Both are used all the same.
bool may_use(const std::string& tls, std::initializer_list<std::string_view> names) {
  const bool but = tls.starts_with('^');
  std::vector<std::string> items = split(but ? tls.substr(1) : tls);
  if (but) return !any_of(items, names);
  for (std::string& item : items) {
    item.erase(std::min(item.find(':'), item.size()));
    if (item.starts_with('\\')) item.erase(0, 1);
  }
  return any_of(items, {"all"}) || any_of(items, names);
}

class Planner {
 public:
  Planner(const Config& config, const UserChoice& user, bool local_job, const std::vector<Interface>& interfaces,
          const std::vector<std::string>& rdma_ports, const std::vector<ReachedAddress>* reached)
      : allow_public_(config.boolean("IBCOLL_ALLOW_PUBLIC")),
        user_(user),
        local_job_(local_job),
        interfaces_(interfaces),
        rdma_ports_(rdma_ports),
        reached_(reached) {
    choose_tls(config.text("IBCOLL_UCX_TLS"));
  }

  Result<DevicePlan> run() {
    if (!plan_.tcp) {
      plan_.net_devices = user_.net_devices;
      return plan_;
    }
    Status status = !user_.net_devices.empty() ? check_wish() : local_job_ ? take_loopback() : take_joining();
    if (!status.ok()) return status;
    return plan_;
  }

 private:
  void choose_tls(const std::string& setting) {
    const char* origin = !setting.empty() ? "IBCOLL_UCX_TLS" : !user_.tls.empty() ? "UCX_TLS" : "default";
    plan_.tls = !setting.empty() ? setting : !user_.tls.empty() ? user_.tls : "tcp";
    plan_.reasons.push_back(fmt::format("transports {}: {}", plan_.tls, origin));
    plan_.tcp = may_use(plan_.tls, {"tcp"});
    plan_.shared_memory = may_use(plan_.tls, {"sm", "shm", "mm", "posix", "sysv", "xpmem"});
    plan_.rdma = !rdma_ports_.empty() && may_use(plan_.tls, {"rc", "ud", "dc", "ib", "rc_v", "ud_v", "rc_x", "ud_x",
                                                             "rc_verbs", "ud_verbs", "rc_mlx5", "ud_mlx5", "dc_mlx5"});
    if (!rdma_ports_.empty() && setting.empty() && user_.tls.empty()) {
      plan_.reasons.push_back(
          fmt::format("{}: not used by default; IBCOLL_UCX_TLS=rc,ud,tcp uses RDMA", joined(rdma_ports_, ",")));
    }
  }

  Status take_loopback() {
    for (const Interface& interface : interfaces_) {
      if (!interface.loopback || !interface.up) continue;
      take({interface.name});
      plan_.reasons.push_back(fmt::format("{}: used, all ranks run on this machine", interface.name));
      return {};
    }
    return error(IBCOLL_ERR_CONFIG,
                 "ucx: no loopback interface is up; `ip link set lo up`, or name an interface in "
                 "UCX_NET_DEVICES");
  }

  // Takes the interfaces that join the hosts: on networks that all hosts are on, or else those that routers lead to.
  Status take_joining() {
    std::vector<std::string> chosen;
    const Way best = best_way();
    for (const Interface& interface : interfaces_) {
      std::string verdict = judge(interface);
      if (verdict.empty() && way_to(interface) < best) verdict = "left out, others join the hosts without a gateway";
      if (verdict.empty()) chosen.push_back(interface.name);
      plan_.reasons.push_back(fmt::format("{}: {}, {}", interface.name, address_text(interface.address),
                                          !verdict.empty()      ? verdict
                                          : reached_ == nullptr ? "used where it joins the hosts of the job"
                                                                : "used"));
    }
    if (chosen.empty()) {
      return error(IBCOLL_ERR_CONFIG,
                   "ucx: no interface with a private address joins this host to all others: {}; bring one up, name one "
                   "in UCX_NET_DEVICES, or set IBCOLL_ALLOW_PUBLIC=yes to listen on public addresses",
                   joined(std::span(plan_.reasons).subspan(1), "; "));
    }
    take(std::move(chosen));
    return {};
  }

  // Empty: may be used.
  std::string judge(const Interface& interface) const {
    if (interface.loopback) return "reaches this machine only";
    if (!interface.up) return "is down";
    if (interface.address.ss_family == 0) return "not used";
    if (is_link_local(interface.address)) return "left out, link-local";
    if (!is_private(interface.address) && !allow_public_) return "public, needs IBCOLL_ALLOW_PUBLIC=yes";
    const ReachedAddress* const reached = reached_at(interface);
    if (reached_ == nullptr) return "";
    if (reached == nullptr) return fmt::format("left out, after {} others", reached_->size());
    if (reached->way == Way::kNone)
      return fmt::format("left out, the host of rank {} has no route to it", reached->worst_rank);
    if (reached->way == Way::kOwn)
      return fmt::format("left out, the host of rank {} has the same address", reached->worst_rank);
    if (!reached->is_source) return "left out, no route to another host of the job goes over it";
    return "";
  }

  const ReachedAddress* reached_at(const Interface& interface) const {
    if (reached_ == nullptr) return nullptr;
    const auto found = std::find_if(reached_->begin(), reached_->end(), [&](const ReachedAddress& reached) {
      return reached.address == ip_of(interface.address);
    });
    return found == reached_->end() ? nullptr : &*found;
  }

  Way way_to(const Interface& interface) const {
    const ReachedAddress* const reached = reached_at(interface);
    return reached == nullptr ? Way::kDirect : reached->way;
  }

  Way best_way() const {
    Way best = Way::kNone;
    for (const Interface& interface : interfaces_)
      if (judge(interface).empty()) best = std::max(best, way_to(interface));
    return best;
  }

  Status check_wish() {
    std::vector<std::string> names = split(user_.net_devices);
    const bool everything = user_.net_devices.starts_with('^') || any_of(names, {"all"});
    for (const Interface& interface : interfaces_) {
      if (!everything && std::find(names.begin(), names.end(), interface.name) == names.end()) continue;
      if (interface.address.ss_family == 0 || !interface.up) continue;  // UCX cannot listen there
      if (!is_private(interface.address) && !allow_public_) {
        return error(IBCOLL_ERR_CONFIG,
                     "ucx: UCX_NET_DEVICES={} takes in {} with the public address {}; name an interface with a private "
                     "address, or set IBCOLL_ALLOW_PUBLIC=yes",
                     user_.net_devices, interface.name, address_text(interface.address));
      }
      plan_.reasons.push_back(
          fmt::format("{}: {}, used, UCX_NET_DEVICES", interface.name, address_text(interface.address)));
    }
    plan_.net_devices = user_.net_devices;
    return {};
  }

  void take(std::vector<std::string> names) {
    if (plan_.rdma) {
      names.insert(names.end(), rdma_ports_.begin(), rdma_ports_.end());
    }
    plan_.net_devices = joined(names, ",");
  }

  const bool allow_public_;
  const UserChoice& user_;
  const bool local_job_;
  const std::vector<Interface>& interfaces_;
  const std::vector<std::string>& rdma_ports_;
  const std::vector<ReachedAddress>* const reached_;  // nullptr: not known
  DevicePlan plan_;
};

}  // namespace

UserChoice UserChoice::from_environment() {
  const auto text = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  return {text("UCX_TLS"), text("UCX_NET_DEVICES")};
}

Result<DevicePlan> plan_devices(const Config& config, const UserChoice& user, bool local_job,
                                const std::vector<Interface>& interfaces, const std::vector<std::string>& rdma_ports,
                                const std::vector<ReachedAddress>* reached) {
  return Planner(config, user, local_job, interfaces, rdma_ports, reached).run();
}

}  // namespace ibcoll::ucx
