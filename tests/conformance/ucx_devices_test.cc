// SPDX-License-Identifier: BSD-3-Clause
// Which devices UCX may open: never a public address without being told to.
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
    const Result<DevicePlan> told = plan_devices(allowed, {"", wish}, true, kMachine, {});
    ASSERT_TRUE(told.ok()) << wish;
    EXPECT_EQ(told.value().net_devices, wish);
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
