// SPDX-License-Identifier: BSD-3-Clause
// Interfaces that lead nowhere, or not to all hosts: a job uses those that join its hosts, and says why not the others.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/multiprocess/checked_call.h"
#include "tests/multiprocess/fork_job.h"
#include "tests/multiprocess/scenario.h"
#include "tests/multiprocess/shared_state.h"

namespace ibcoll::multiprocess {
namespace {

using Prepare = std::function<void(const Machines&, int machine)>;

// A device whose other end is on the same machine, so that it has a carrier and leads nowhere.
void add_stub(const Machines& machines, int machine, const std::string& device, const std::string& address) {
  machines.run_on(machine, fmt::format("ip link add name {} type veth peer name {}-end", device, device));
  machines.run_on(machine, fmt::format("ip address add {} dev {}", address, device));
  machines.run_on(machine, fmt::format("ip link set {}-end up", device));
  machines.run_on(machine, fmt::format("ip link set {} up", device));
  machines.await_running(machine, device);
}

Prepare stub(const char* device, const char* first, const char* second) {
  return [=](const Machines& machines, int machine) {
    add_stub(machines, machine, device, machine == 0 ? first : second);
  };
}

void add_bridge(const Machines& machines, int machine) {
  machines.run_on(machine, "ip link add name docker0 type bridge");
  machines.run_on(machine, "ip address add 172.17.0.1/16 dev docker0");
  machines.run_on(machine, "ip link add name container type veth peer name container-end");
  for (const char* command : {"container master docker0 up", "container-end up", "docker0 up"})
    machines.run_on(machine, fmt::format("ip link set {}", command));
  machines.await_running(machine, "docker0");
}

void add_idle_device(const Machines& machines, int machine) {
  machines.run_on(machine, "ip link add name idle type veth peer name idle-end");
  machines.run_on(machine, fmt::format("ip address add 10.77.0.{}/24 dev idle", machine + 1));
}

void add_cable(const Machines& machines, int machine, int other, int network) {
  const std::string device = fmt::format("net{}", network);
  machines.join(machine, other, device);
  for (const int end : {machine, other})
    machines.run_on(end, fmt::format("ip address add 10.77.{}.{}/24 dev {}", network, end + 1, device));
}

void without_eth0(const Machines& machines, int machine) { machines.run_on(machine, "ip link set eth0 down"); }

struct Hosts {
  const char* name;
  int count;
  Prepare before;                    // a machine has eth0
  Prepare after;                     // all machines have it
  std::vector<const char*> devices;  // that each machine is to use; none: the job is refused
  std::vector<const char*> said;     // on the first machine
};

// googletest would print the bytes.
void PrintTo(const Hosts& hosts, std::ostream* stream) { *stream << hosts.name; }

class HostsWith : public testing::TestWithParam<Hosts> {
 protected:
  void SetUp() override {
    if (const std::string why = Machines::missing(); !why.empty()) GTEST_SKIP() << why;
    ::setenv("UCX_TLS", "tcp", 1);
    ::unsetenv("UCX_NET_DEVICES");
    ::setenv("IBCOLL_NET", "ucx", 1);
    ::setenv("IBCOLL_LOG", "error", 1);
  }
};

std::string info_of(ibcoll_context_t context) {
  std::string text(ibcoll_info_json(context, nullptr, 0) + 1, '\0');
  ibcoll_info_json(context, text.data(), text.size());
  return text;
}

int rank_of(const Hosts& hosts, ForkedRank& self) {
  const auto machine = static_cast<size_t>(self.rank * hosts.count / self.size);
  ibcoll_context_t context = nullptr;
  const ibcoll_context_params_t params{sizeof params, &self.bootstrap};
  const ibcoll_status_t status = ibcoll_context_create(&params, &context);
  std::string said = ibcoll_last_error();
  if (hosts.devices.empty()) {
    expect(status == IBCOLL_ERR_CONFIG, "{}: {}", static_cast<int>(status), said);
  } else {
    if (!expect_ok(status, "ibcoll_context_create")) return 1;
    said = info_of(context);
    const std::string used = fmt::format("\"devices\":\"{}\"", hosts.devices[machine]);
    expect(said.find(used) != std::string::npos, "not {}: {}", used, said);
    CheckedCall(ibcoll_team_world(context), {.collective = IBCOLL_ALLTOALL, .bytes = 100'000}).run(0);
    expect_ok(ibcoll_context_destroy(context), "ibcoll_context_destroy");
  }
  for (const char* reason : hosts.said)
    expect(machine != 0 || said.find(reason) != std::string::npos, "not {:?}: {}", reason, said);
  return complaints() > 0 ? 1 : 0;
}

TEST_P(HostsWith, UseWhatJoinsThem) {
  const Hosts& hosts = GetParam();
  const Machines machines(hosts.count, hosts.before);
  for (int machine = 0; hosts.after && machine < hosts.count; ++machine) hosts.after(machines, machine);
  const int ranks = 2 * hosts.count;
  const std::vector<Ending> endings =
      ForkJob(ranks, hosts.count, machines).run([&](ForkedRank& self) { return rank_of(hosts, self); }, 120);
  for (const Ending& ending : endings) {
    EXPECT_FALSE(ending.overdue);
    EXPECT_TRUE(ending.exited) << "a rank died of signal " << ending.code;
    EXPECT_EQ(ending.code, 0);
  }
}

// The user's choice wins, also where it does not join the hosts. UCX then connects to no host, to this host itself, or
// to nothing. Whatever comes of it, no rank is ended by UCX.
struct Wrong {
  const char* name;
  const char* devices;
  Prepare before;
  const char* said;  // by a rank at least; empty: the job may work
};

void PrintTo(const Wrong& wrong, std::ostream* stream) { *stream << wrong.name; }

class WrongDevices : public testing::TestWithParam<Wrong> {
 protected:
  void SetUp() override {
    if (const std::string why = Machines::missing(); !why.empty()) GTEST_SKIP() << why;
    ::setenv("UCX_TLS", "tcp", 1);
    ::setenv("UCX_NET_DEVICES", GetParam().devices, 1);
    ::setenv("IBCOLL_NET", "ucx", 1);
    ::setenv("IBCOLL_LOG", "error", 1);
    ::setenv("IBCOLL_PEER_TIMEOUT", "2", 1);
  }
};

int rank_on_wrong_devices(ForkedRank& self, const Wrong& wrong, std::atomic<int>& said) {
  ibcoll_context_t context = nullptr;
  const ibcoll_context_params_t params{sizeof params, &self.bootstrap};
  ibcoll_status_t status = ibcoll_context_create(&params, &context);
  if (status == IBCOLL_OK) {
    const size_t bytes = 100'000;
    std::vector<char> from(bytes * static_cast<size_t>(self.size)), to(from.size());
    status = ibcoll_alltoall(ibcoll_team_world(context), from.data(), to.data(), bytes);
  }
  const std::string why = ibcoll_last_error();
  const bool may_pass = *wrong.said == '\0';
  expect(status == IBCOLL_ERR_PEER_FAILED || (may_pass && status == IBCOLL_OK), "{}: {}", static_cast<int>(status),
         why);
  if (why.find(wrong.said) != std::string::npos) ++said;
  if (context != nullptr) ibcoll_context_destroy(context);
  return complaints() > 0 ? 1 : 0;
}

TEST_P(WrongDevices, EndNoRank) {
  const Machines machines(2, GetParam().before);
  SharedState<std::atomic<int>> said;
  const std::vector<Ending> endings =
      ForkJob(4, 2, machines)
          .run([&](ForkedRank& self) { return rank_on_wrong_devices(self, GetParam(), *said); }, 120);
  for (const Ending& ending : endings) {
    EXPECT_FALSE(ending.overdue);
    EXPECT_TRUE(ending.exited) << "a rank died of signal " << ending.code;
    EXPECT_EQ(ending.code, 0);
  }
  EXPECT_GT(*said, 0);
}

const Wrong kWrong[] = {
    {"TheSameAddress", "virbr0", stub("virbr0", "192.168.122.1/24", "192.168.122.1/24"),
     "192.168.122.1 was not made: Connection refused"},
    {"NobodyAtTheAddress", "bmc", stub("bmc", "169.254.7.7/16", "169.254.8.8/16"), "169.254.7.7 has not answered"},
    {"NoRoute", "flannel", stub("flannel", "10.244.0.0/32", "10.244.1.0/32"), "Destination is unreachable"},
    // Which of the two UCX takes varies.
    {"TheSameAddressOrAnother", "virbr0,eth0", stub("virbr0", "192.168.122.1/24", "192.168.122.1/24"), ""},
    {"LinkLocalOrAnother", "bmc,eth0", stub("bmc", "169.254.7.7/16", "169.254.7.7/16"), ""},
    {"NobodyThereOrAnother", "bmc,eth0", stub("bmc", "169.254.7.7/16", "169.254.8.8/16"), ""},
    {"NoRouteOrAnother", "flannel,eth0", stub("flannel", "10.244.0.0/32", "10.244.1.0/32"), ""},
};

INSTANTIATE_TEST_SUITE_P(Of, WrongDevices, testing::ValuesIn(kWrong),
                         [](const testing::TestParamInfo<Wrong>& info) { return info.param.name; });

const Hosts kHosts[] = {
    {"LinkLocalAddresses",
     2,
     stub("bmc", "169.254.7.7/16", "169.254.7.7/16"),
     {},
     {"eth0", "eth0"},
     {"bmc: 169.254.7.7, left out, link-local"}},
    {"LinkLocalAddressesThatDiffer",
     2,
     stub("bmc", "169.254.7.7/16", "169.254.8.8/16"),
     {},
     {"eth0", "eth0"},
     {"bmc: 169.254.7.7, left out, link-local"}},
    {"NetworksOfOneAddress",
     2,
     stub("flannel", "10.244.0.0/32", "10.244.1.0/32"),
     {},
     {"eth0", "eth0"},
     {"flannel: 10.244.0.0, left out, the host of rank 2 has no route to it"}},
    {"TheSameAddress",
     2,
     stub("virbr0", "192.168.122.1/24", "192.168.122.1/24"),
     {},
     {"eth0", "eth0"},
     {"virbr0: 192.168.122.1, left out, the host of rank 2 has the same address"}},
    {"ABridgeOfContainers",
     2,
     add_bridge,
     {},
     {"eth0", "eth0"},
     {"docker0: 172.17.0.1, left out, the host of rank 2 has the same address"}},
    {"ADeviceThatIsDown", 2, add_idle_device, {}, {"eth0", "eth0"}, {"idle: 10.77.0.1, is down"}},
    {"ADeviceOnOneHostOnly",
     2,
     [](const Machines& machines, int machine) {
       if (machine == 0) add_stub(machines, machine, "lxdbr0", "10.55.1.1/24");
     },
     {},
     {"eth0", "eth0"},
     {"lxdbr0: 10.55.1.1, left out, the host of rank 2 has no route to it"}},
    // The default gateway takes packets for every address, also for those that it cannot deliver.
    {"ADefaultGateway",
     2,
     stub("lxdbr0", "10.55.1.1/24", "10.55.2.1/24"),
     [](const Machines& machines, int machine) {
       machines.run_on(machine, "ip route add default via 10.83.7.254 dev eth0");
     },
     {"eth0", "eth0"},
     {"lxdbr0: 10.55.1.1, left out, no route to another host of the job goes over it"}},
    // As in clouds: each host is alone in its network, and a gateway joins all. It takes packets for every address.
    {"GatewaysBetweenAll",
     2,
     stub("flannel", "10.244.0.0/32", "10.244.1.0/32"),
     [](const Machines& machines, int machine) {
       machines.run_on(machine, "ip route delete 10.83.7.0/24 dev eth0");
       machines.run_on(machine,
                       fmt::format("ip route add default via {} dev eth0 onlink", Machines::address(1 - machine)));
     },
     {"eth0", "eth0"},
     {"flannel: 10.244.0.0, left out, no route to another host of the job goes over it"}},
    {"AnOverlay",
     2,
     stub("flannel", "10.244.0.0/32", "10.244.1.0/32"),
     [](const Machines& machines, int machine) {
       machines.run_on(machine, fmt::format("ip route add 10.244.{}.0/24 via 10.244.{}.0 dev flannel onlink",
                                            1 - machine, 1 - machine));
     },
     {"eth0", "eth0"},
     {"flannel: 10.244.0.0, left out, others join the hosts without a gateway"}},
    {"IPv6Only",
     2,
     {},
     [](const Machines& machines, int machine) {
       machines.run_on(machine, "ip address flush dev eth0 scope global");
       machines.run_on(machine, fmt::format("ip address add fd83::{}/64 dev eth0 nodad", machine + 1));
     },
     {"eth0", "eth0"},
     {"eth0: fd83::1, used"}},
    {"IPv6OnOneAndIPv4OnTheOther",
     2,
     {},
     [](const Machines& machines, int machine) {
       if (machine == 0) return;
       machines.run_on(machine, "ip address flush dev eth0 scope global");
       machines.run_on(machine, "ip address add fd83::2/64 dev eth0 nodad");
     },
     {},
     {"eth0: 10.83.7.1, left out, the host of rank 2 has no route to it"}},
    {"IPv6LinkLocalOnly",
     2,
     {},
     [](const Machines& machines, int machine) { machines.run_on(machine, "ip address flush dev eth0 scope global"); },
     {},
     {"left out, link-local"}},
    {"TwoNetworksThatBothJoin",
     2,
     [](const Machines& machines, int machine) {
       if (machine == 1) add_cable(machines, 0, 1, 0);
     },
     {},
     {"eth0,net0", "net0,eth0"},
     {"net0: 10.77.0.1, used", "eth0: 10.83.7.1, used"}},
    // The first two hosts share a network, and the last two another one: what lies in between passes packets on.
    {"ARouterAmongThem",
     3,
     [](const Machines& machines, int machine) {
       if (machine > 0) add_cable(machines, machine - 1, machine, machine - 1);
     },
     [](const Machines& machines, int machine) {
       without_eth0(machines, machine);
       if (machine == 0) machines.run_on(machine, "ip route add 10.77.1.0/24 via 10.77.0.2");
       if (machine == 1) machines.run_on(machine, "sysctl -q -w net.ipv4.ip_forward=1");
       if (machine == 2) machines.run_on(machine, "ip route add 10.77.0.0/24 via 10.77.1.2");
     },
     {"net0", "net0,net1", "net1"},
     {"net0: 10.77.0.1, used"}},
    {"ANetworkThatLacksOneHost",
     3,
     [](const Machines& machines, int machine) {
       if (machine == 1) add_cable(machines, 0, 1, 0);
     },
     {},
     {"eth0", "eth0", "eth0"},
     {"net0: 10.77.0.1, left out, the host of rank 4 has no route to it"}},
    // A cable between each two of three hosts: UCX 1.13 would connect any two of their interfaces.
    {"NoNetworkThatJoinsAll",
     3,
     [](const Machines& machines, int machine) {
       if (machine > 0) add_cable(machines, machine - 1, machine, machine - 1);
       if (machine == 2) add_cable(machines, 0, 2, 2);
     },
     without_eth0,
     {},
     {"no interface", "net0: 10.77.0.1, left out, the host of rank 4 has no route to it",
      "net2: 10.77.2.1, left out, the host of rank 2 has no route to it"}},
};

INSTANTIATE_TEST_SUITE_P(These, HostsWith, testing::ValuesIn(kHosts),
                         [](const testing::TestParamInfo<Hosts>& info) { return info.param.name; });

}  // namespace
}  // namespace ibcoll::multiprocess
