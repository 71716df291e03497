// SPDX-License-Identifier: BSD-3-Clause
// Which devices UCX may open: never a public address without the setting for it, and none that does not join the hosts.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include "runtime/ucx/devices.h"

namespace ibcoll::ucx {
namespace {

sockaddr_storage address(const std::string& text) {
  sockaddr_storage storage{};
  auto& four = reinterpret_cast<sockaddr_in&>(storage);
  auto& six = reinterpret_cast<sockaddr_in6&>(storage);
  if (inet_pton(AF_INET, text.c_str(), &four.sin_addr) == 1) {
    storage.ss_family = AF_INET;
  } else if (inet_pton(AF_INET6, text.c_str(), &six.sin6_addr) == 1) {
    storage.ss_family = AF_INET6;
  }
  return storage;
}

Config config_with(std::vector<const char*> environment) {
  environment.push_back(nullptr);
  Result<Config> config = Config::load_from(environment.data());
  EXPECT_TRUE(config.ok()) << config.status().text();
  return *config;
}

const std::vector<Interface> kMachine{
    {"lo", true, true, address("127.0.0.1")},        {"pub0", true, false, address("8.8.4.4")},
    {"priv0", true, false, address("10.1.2.3")},     {"priv1", true, false, address("fd00::7")},
    {"down0", false, false, address("192.168.0.1")}, {"none0", true, false, {}}};

TEST(UcxDevices, PrivateAddresses) {
  for (const char* text : {"127.0.0.1", "127.9.9.9", "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255",
                           "192.168.0.1", "100.64.0.1", "100.127.255.255", "169.254.1.1", "::1", "fe80::1", "febf::1",
                           "fc00::1", "fdff::1", "::ffff:10.1.1.1"}) {
    EXPECT_TRUE(is_private(address(text))) << text;
  }
  for (const char* text : {"8.8.8.8", "9.255.255.255", "11.0.0.1", "172.15.255.255", "172.32.0.1", "192.167.255.255",
                           "192.169.0.1", "100.63.255.255", "100.128.0.0", "169.253.1.1", "192.0.2.2", "0.0.0.0",
                           "::", "2001:db8::1", "fec0::1", "fe00::1", "::ffff:8.8.8.8"}) {
    EXPECT_FALSE(is_private(address(text))) << text;
  }
  EXPECT_FALSE(is_private(sockaddr_storage{}));
}

TEST(UcxDevices, LinkLocalAddresses) {
  for (const char* text : {"169.254.7.7", "fe80::1", "febf::1", "::ffff:169.254.7.7"})
    EXPECT_TRUE(is_link_local(address(text))) << text;
  for (const char* text : {"10.0.0.1", "169.253.7.7", "127.0.0.1", "::1", "fd00::1", "fec0::1", "::ffff:10.1.1.1"})
    EXPECT_FALSE(is_link_local(address(text))) << text;
  EXPECT_FALSE(is_link_local(sockaddr_storage{}));
}

TEST(UcxDevices, LocalJobsUseLoopback) {
  const Result<DevicePlan> plan = plan_devices(Config(), {}, true, kMachine, {});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan.value().tls, "tcp");
  EXPECT_EQ(plan.value().net_devices, "lo");
}

TEST(UcxDevices, OtherJobsUsePrivateInterfaces) {
  const Result<DevicePlan> plan = plan_devices(Config(), {}, false, kMachine, {"mlx5_0:1"});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan.value().net_devices, "priv0,priv1");
  const Config allowed = config_with({"IBCOLL_ALLOW_PUBLIC=yes"});
  EXPECT_EQ(plan_devices(allowed, {}, false, kMachine, {}).value().net_devices, "pub0,priv0,priv1");
}

// The reason that a plan gives for an interface, without its name and address.
std::string reason_for(const DevicePlan& plan, const std::string& name) {
  for (const std::string& reason : plan.reasons)
    if (reason.starts_with(name + ": ")) return reason.substr(reason.find(", ") + 2);
  return "none";
}

TEST(UcxDevices, OnlyInterfacesThatJoinTheHosts) {
  const std::vector<Interface> machine{
      {"lo", true, true, address("127.0.0.1")},      {"bmc", true, false, address("169.254.7.7")},
      {"six", true, false, address("fe80::7")},      {"own", true, false, address("192.168.122.1")},
      {"none", true, false, address("10.244.0.0")},  {"stub", true, false, address("10.55.1.1")},
      {"routed", true, false, address("10.60.0.1")}, {"direct0", true, false, address("10.1.2.3")},
      {"direct1", true, false, address("10.2.2.3")}, {"more", true, false, address("10.3.2.3")},
      {"down", false, false, address("10.99.0.1")}};
  std::vector<ReachedAddress> reached{
      {ip_of(address("192.168.122.1")), Way::kOwn, 4},       {ip_of(address("10.244.0.0")), Way::kNone, 5},
      {ip_of(address("10.55.1.1")), Way::kRouted, 4, false}, {ip_of(address("10.60.0.1")), Way::kRouted, 4},
      {ip_of(address("10.1.2.3")), Way::kDirect, 4},         {ip_of(address("10.2.2.3")), Way::kDirect, 4}};
  const Result<DevicePlan> plan = plan_devices(Config(), {}, false, machine, {}, &reached);
  ASSERT_TRUE(plan.ok()) << plan.status().text();
  EXPECT_EQ(plan.value().net_devices, "direct0,direct1");
  EXPECT_EQ(reason_for(plan.value(), "bmc"), "left out, link-local");
  EXPECT_EQ(reason_for(plan.value(), "six"), "left out, link-local");
  EXPECT_EQ(reason_for(plan.value(), "own"), "left out, the host of rank 4 has the same address");
  EXPECT_EQ(reason_for(plan.value(), "none"), "left out, the host of rank 5 has no route to it");
  EXPECT_EQ(reason_for(plan.value(), "stub"), "left out, no route to another host of the job goes over it");
  EXPECT_EQ(reason_for(plan.value(), "routed"), "left out, others join the hosts without a gateway");
  EXPECT_EQ(reason_for(plan.value(), "more"), "left out, after 6 others");
  EXPECT_EQ(reason_for(plan.value(), "down"), "is down");
  reached.resize(4);
  EXPECT_EQ(plan_devices(Config(), {}, false, machine, {}, &reached).value().net_devices, "routed");
  reached.resize(3);
  const Status refused = plan_devices(Config(), {}, false, machine, {}, &reached).status();
  EXPECT_EQ(refused.code(), IBCOLL_ERR_CONFIG);
  for (const char* word :
       {"joins this host to all others", "own: 192.168.122.1", "none: 10.244.0.0", "UCX_NET_DEVICES"})
    EXPECT_NE(refused.text().find(word), std::string::npos) << refused.text();
  EXPECT_EQ(plan_devices(Config(), {"", "bmc,own"}, false, machine, {}, &reached).value().net_devices, "bmc,own");
}

TEST(UcxDevices, WithoutAJobItIsNotKnownWhatJoinsTheHosts) {
  const Result<DevicePlan> plan = plan_devices(Config(), {}, false, kMachine, {});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(reason_for(plan.value(), "priv0"), "used where it joins the hosts of the job");
}

TEST(UcxDevices, RefusesWhenThereIsNothingPrivate) {
  const std::vector<Interface> machine(kMachine.begin(), kMachine.begin() + 2);
  const Result<DevicePlan> plan = plan_devices(Config(), {}, false, machine, {});
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().code(), IBCOLL_ERR_CONFIG);
  for (const char* word : {"pub0", "8.8.4.4", "IBCOLL_ALLOW_PUBLIC=yes"}) {
    EXPECT_NE(plan.status().text().find(word), std::string::npos) << plan.status().text();
  }
}

TEST(UcxDevices, RefusesAUsersPublicDevice) {
  for (const char* wish : {"pub0", "priv0,pub0", "all", "^priv0"}) {
    const Result<DevicePlan> plan = plan_devices(Config(), {"", wish}, true, kMachine, {});
    ASSERT_FALSE(plan.ok()) << wish;
    EXPECT_NE(plan.status().text().find("8.8.4.4"), std::string::npos) << plan.status().text();
    const Config allowed = config_with({"IBCOLL_ALLOW_PUBLIC=yes"});
    const Result<DevicePlan> planned = plan_devices(allowed, {"", wish}, true, kMachine, {});
    ASSERT_TRUE(planned.ok()) << wish;
    EXPECT_EQ(planned.value().net_devices, wish);
  }
  EXPECT_EQ(plan_devices(Config(), {"", "priv0"}, true, kMachine, {}).value().net_devices, "priv0");
}

TEST(UcxDevices, TransportsThatDoNotListenAreNotConcerned) {
  const std::vector<Interface> machine(kMachine.begin(), kMachine.begin() + 2);
  const Config shared = config_with({"IBCOLL_UCX_TLS=sm,self"});
  const Result<DevicePlan> plan = plan_devices(shared, {}, false, machine, {});
  ASSERT_TRUE(plan.ok()) << plan.status().text();
  EXPECT_EQ(plan.value().net_devices, "");
  EXPECT_TRUE(plan.value().shared_memory);
  EXPECT_FALSE(plan.value().tcp);
}

TEST(UcxDevices, SettingWinsOverUcxVariable) {
  const Config setting = config_with({"IBCOLL_UCX_TLS=tcp,sm"});
  EXPECT_EQ(plan_devices(setting, {"rc,ud", ""}, true, kMachine, {}).value().tls, "tcp,sm");
  EXPECT_EQ(plan_devices(Config(), {"rc,tcp", ""}, true, kMachine, {}).value().tls, "rc,tcp");
}

TEST(UcxDevices, RdmaPortsStayAvailable) {
  const Config setting = config_with({"IBCOLL_UCX_TLS=rc,ud,tcp"});
  const Result<DevicePlan> plan = plan_devices(setting, {}, false, kMachine, {"mlx5_0:1"});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan.value().net_devices, "priv0,priv1,mlx5_0:1");
  EXPECT_TRUE(plan.value().rdma);
}

TEST(UcxDevices, AllAndNegatedListsTakeInTcp) {
  for (const char* tls : {"all", "^sm", "tcp,self", "rc,tcp", "\\tcp", "sm,tcp:aux"}) {
    EXPECT_FALSE(plan_devices(Config(), {tls, "pub0"}, true, kMachine, {}).ok()) << tls;
  }
  EXPECT_TRUE(plan_devices(Config(), {"^tcp", "pub0"}, true, kMachine, {}).ok());
}

TEST(UcxDevices, ThisMachineHasLoopback) {
  const Result<std::vector<Interface>> interfaces = list_interfaces();
  ASSERT_TRUE(interfaces.ok());
  const Result<DevicePlan> plan = plan_devices(Config(), {}, true, interfaces.value(), {});
  ASSERT_TRUE(plan.ok()) << plan.status().text();
  EXPECT_EQ(plan.value().net_devices, "lo");
}

}  // namespace
}  // namespace ibcoll::ucx
