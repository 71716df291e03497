// SPDX-License-Identifier: BSD-3-Clause
// Which port and GID are chosen of those that a machine has, and what is said when none can be.
#include "runtime/verbs/devices.h"

#include "runtime/verbs/addresses.h"

#include <gtest/gtest.h>

namespace ibcoll::verbs {
namespace {

GidEntry gid(int index, GidEntry::Type type, std::initializer_list<uint8_t> front,
             std::initializer_list<uint8_t> back) {
  GidEntry entry{index, type, {}};
  std::copy(front.begin(), front.end(), entry.gid.begin());
  std::copy(back.begin(), back.end(), entry.gid.end() - static_cast<ptrdiff_t>(back.size()));
  return entry;
}

Port ethernet_port(const std::string& device) {
  Port port;
  port.device = device;
  port.state = "ACTIVE";
  port.active = port.ethernet = port.near = true;
  port.gigabits = 100;
  port.gids = {gid(0, GidEntry::Type::kRoceV1, {0xfe, 0x80}, {1}), gid(1, GidEntry::Type::kRoceV2, {0xfe, 0x80}, {1}),
               gid(2, GidEntry::Type::kRoceV1, {}, {0xff, 0xff, 10, 1, 0, 5}),
               gid(3, GidEntry::Type::kRoceV2, {}, {0xff, 0xff, 10, 1, 0, 5}),
               gid(4, GidEntry::Type::kRoceV2, {}, {0xff, 0xff, 10, 2, 0, 5})};
  return port;
}

Port infiniband_port(const std::string& device) {
  Port port;
  port.device = device;
  port.state = "ACTIVE";
  port.active = port.near = true;
  port.lid = 7;
  port.gigabits = 100;
  port.gids = {gid(0, GidEntry::Type::kInfiniBand, {0xfe, 0x80}, {9})};
  return port;
}

Result<PortChoice> choose(const std::vector<Port>& ports, const std::string& setting = "IBCOLL_LOG=warn") {
  const char* environment[] = {setting.c_str(), nullptr};
  Result<Config> config = Config::load_from(environment);
  EXPECT_TRUE(config.ok());
  return choose_port(*config, ports);
}

void expect_error(Result<PortChoice> choice, ibcoll_status_t code, const std::string& text) {
  ASSERT_FALSE(choice.ok()) << "chosen: " << choice->port.device;
  EXPECT_EQ(choice.status().code(), code);
  EXPECT_NE(choice.status().text().find(text), std::string::npos) << choice.status().text();
}

TEST(PortChoice, NoDevice) { expect_error(choose({}), IBCOLL_ERR_UNSUPPORTED, "no RDMA device"); }

TEST(PortChoice, RoceIsAddressedByTheIpv4GidOfVersion2) {
  Result<PortChoice> choice = choose({ethernet_port("mlx5_0")});
  ASSERT_TRUE(choice.ok()) << choice.status().text();
  EXPECT_TRUE(choice->global);
  EXPECT_EQ(choice->gid_index, 3);
}

TEST(PortChoice, InfiniBandIsAddressedByItsLid) {
  Result<PortChoice> choice = choose({infiniband_port("ib0")});
  ASSERT_TRUE(choice.ok()) << choice.status().text();
  EXPECT_FALSE(choice->global);
}

TEST(PortChoice, ActiveThenNearThenFast) {
  std::vector<Port> ports{ethernet_port("down"), ethernet_port("far"), ethernet_port("slow"), ethernet_port("best")};
  ports[0].active = false;
  ports[1].near = false;
  ports[2].gigabits = 25;
  Result<PortChoice> choice = choose(ports);
  ASSERT_TRUE(choice.ok()) << choice.status().text();
  EXPECT_EQ(choice->port.device, "best");
  EXPECT_EQ(choose(ports, "IBCOLL_VERBS_DEVICE=slow:1")->port.device, "slow");
}

// On either side of a machine with both kinds.
TEST(PortChoice, InfiniBandBeforeEthernet) {
  for (const bool infiniband_is_near : {true, false}) {
    std::vector<Port> ports{ethernet_port("mlx5_0"), infiniband_port("mlx5_1")};
    ports[0].near = !infiniband_is_near;
    ports[1].near = infiniband_is_near;
    EXPECT_EQ(choose(ports)->port.device, "mlx5_1");
    EXPECT_EQ(choose(ports, "IBCOLL_VERBS_DEVICE=mlx5_0")->port.device, "mlx5_0");
  }
}

TEST(PortChoice, InfiniBandThatDemandsAGidIsAddressedByIt) {
  Port port = infiniband_port("mlx5_0");
  port.needs_gid = true;
  Result<PortChoice> choice = choose({port});
  ASSERT_TRUE(choice.ok()) << choice.status().text();
  EXPECT_TRUE(choice->global);
  EXPECT_EQ(choice->gid_index, 0);
}

TEST(PortChoice, PortsThatAreDown) {
  Port port = ethernet_port("mlx5_0");
  port.active = false;
  port.state = "DOWN";
  expect_error(choose({port}), IBCOLL_ERR_CONFIG, "no RDMA port can be used: mlx5_0:1 (DOWN); check the cable");
  expect_error(choose({port, ethernet_port("mlx5_1")}, "IBCOLL_VERBS_DEVICE=mlx5_0"), IBCOLL_ERR_CONFIG,
               "IBCOLL_VERBS_DEVICE=mlx5_0: no RDMA port can be used: mlx5_0:1 (DOWN); check the cable");
}

TEST(PortChoice, ADeviceThatCannotBeOpenedTakesNothingAwayFromOthers) {
  Port closed;
  closed.device = "mlx5_0";
  closed.state = "unknown";
  closed.unfit = "mlx5_0: ibv_open_device: Permission denied";
  closed.closed = true;
  EXPECT_EQ(choose({closed, ethernet_port("mlx5_1")})->port.device, "mlx5_1");
  expect_error(choose({closed}), IBCOLL_ERR_CONFIG, "(unknown, mlx5_0: ibv_open_device: Permission denied)");
}

TEST(PortChoice, WrongName) {
  expect_error(choose({ethernet_port("mlx5_0")}, "IBCOLL_VERBS_DEVICE=mlx4_0"), IBCOLL_ERR_CONFIG,
               "IBCOLL_VERBS_DEVICE=mlx4_0: there is no such device or port; there are: mlx5_0:1 (ACTIVE)");
  expect_error(choose({ethernet_port("mlx5_0")}, "IBCOLL_VERBS_DEVICE=mlx5_0:2"), IBCOLL_ERR_CONFIG,
               "no such device or port");
}

TEST(PortChoice, Gids) {
  const std::vector<Port> ports{ethernet_port("mlx5_0")};
  EXPECT_EQ(choose(ports, "IBCOLL_VERBS_GID=2")->gid_index, 2);
  EXPECT_EQ(choose(ports, "IBCOLL_VERBS_GID=10.2.0.0/16")->gid_index, 4);
  for (const char* wrong : {"IBCOLL_VERBS_GID=9", "IBCOLL_VERBS_GID=10.3.0.0/16"})
    expect_error(choose(ports, wrong), IBCOLL_ERR_CONFIG, "fits none of its GIDs: 0 fe80::1 (RoCE v1)");
}

TEST(PortChoice, PublicAddressesHaveToBeAllowed) {
  Port port = ethernet_port("mlx5_0");
  port.gids = {gid(0, GidEntry::Type::kRoceV2, {}, {0xff, 0xff, 8, 8, 8, 8})};
  expect_error(choose({port}), IBCOLL_ERR_CONFIG, "the address ::ffff:8.8.8.8 is public; IBCOLL_ALLOW_PUBLIC");
  expect_error(choose({port}, "IBCOLL_VERBS_GID=0"), IBCOLL_ERR_CONFIG, "the address ::ffff:8.8.8.8 is public");
  EXPECT_TRUE(choose({port}, "IBCOLL_ALLOW_PUBLIC=yes").ok());
}

TEST(PortChoice, MemoryWindows) {
  Port port = ethernet_port("mlx5_0");
  port.windows = false;
  EXPECT_FALSE(choose({port})->opens_windows);
  EXPECT_FALSE(choose({port}, "IBCOLL_VERBS_WINDOWS=off")->opens_windows);
  expect_error(choose({port}, "IBCOLL_VERBS_WINDOWS=on"), IBCOLL_ERR_CONFIG,
               "mlx5_0:1: IBCOLL_VERBS_WINDOWS=on, but the device has no memory windows of type 2B; use auto or off");
  port.windows = true;
  for (const bool good : {false, true}) {
    port.good_windows = good;
    EXPECT_EQ(choose({port})->opens_windows, good);
    EXPECT_TRUE(choose({port}, "IBCOLL_VERBS_WINDOWS=on")->opens_windows);
    EXPECT_FALSE(choose({port}, "IBCOLL_VERBS_WINDOWS=off")->opens_windows);
  }
}

// iWARP has no Write with immediate, other protocols no reliable connections.
TEST(PortChoice, DevicesThatLackWhatIsNeeded) {
  EXPECT_STREQ(unfitness(IBV_TRANSPORT_IB), "");
  EXPECT_STRNE(unfitness(IBV_TRANSPORT_USNIC_UDP), "");
  EXPECT_STRNE(unfitness(IBV_TRANSPORT_UNSPECIFIED), "");
  Port iwarp = ethernet_port("siw0");
  iwarp.unfit = unfitness(IBV_TRANSPORT_IWARP);
  expect_error(choose({iwarp}), IBCOLL_ERR_UNSUPPORTED, "siw0:1 (ACTIVE, iWARP has no Write with immediate)");
  iwarp.gigabits = 400;
  Result<PortChoice> choice = choose({iwarp, ethernet_port("mlx5_0")});
  ASSERT_TRUE(choice.ok()) << choice.status().text();
  EXPECT_EQ(choice->port.device, "mlx5_0");
}

TEST(Addresses, RanksThatCannotReachEachOtherAreTold) {
  const auto address = [](const Port& port, const char* setting = nullptr) {
    Result<PortChoice> choice = choose({port}, setting ? setting : "IBCOLL_LOG=error");
    EXPECT_TRUE(choice.ok()) << choice.status().text();
    return address_of(*choice);
  };
  Port routed = infiniband_port("mlx5_1"), elsewhere = infiniband_port("mlx5_2");
  routed.needs_gid = true;
  elsewhere.gids[0].gid[7] = 1;
  const Address v2 = address(ethernet_port("mlx5_0")), v1 = address(ethernet_port("mlx5_0"), "IBCOLL_VERBS_GID=2"),
                by_lid = address(infiniband_port("mlx5_0")), by_gid = address(routed), far = address(elsewhere);
  for (const Address& alike : {v2, v1, by_lid, by_gid, far}) EXPECT_TRUE(check_reach(0, alike, 1, alike).ok());
  const auto expect_refused = [](const Address& own, const Address& other, std::string_view why) {
    const Status status = check_reach(3, own, 4, other);
    EXPECT_EQ(status.code(), IBCOLL_ERR_CONFIG);
    EXPECT_NE(status.text().find(why), std::string::npos) << status.text();
  };
  expect_refused(v2, v1, "rank 3 uses RoCE v2 and rank 4 RoCE v1");
  expect_refused(v2, by_lid, "rank 3 is addressed by GID and rank 4 by LID");
  expect_refused(by_gid, v2, "rank 3 uses InfiniBand and rank 4 RoCE v2");
  expect_refused(by_lid, far, "rank 3 and rank 4 are on different InfiniBand subnets");
}

}  // namespace
}  // namespace ibcoll::verbs
