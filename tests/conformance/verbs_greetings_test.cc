// SPDX-License-Identifier: BSD-3-Clause
// A rank that greets more peers than datagrams may be in flight learns it before one is lost.
#include "runtime/verbs/greetings.h"

#include <gtest/gtest.h>

#include <chrono>

#include "runtime/verbs/devices.h"
#include "tests/conformance/group_network.h"

namespace ibcoll::verbs {
namespace {

Device open_device(const std::string& name) {
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  Device device;
  for (int i = 0; i < count; ++i)
    if (name == ibv_get_device_name(list[i])) device.reset(ibv_open_device(list[i]));
  if (list != nullptr) ibv_free_device_list(list);
  return device;
}

TEST(Greetings, NoneIsLostWhileThereIsRoom) {
  if (!conformance::machine_has_rdma()) GTEST_SKIP() << "needs an RDMA device";
  const char* no_settings[] = {nullptr};
  Result<Config> config = Config::load_from(no_settings);
  ASSERT_TRUE(config.ok());
  Result<PortChoice> choice = choose_port(*config, list_ports());
  ASSERT_TRUE(choice.ok()) << choice.status().text();
  const Device device = open_device(choice->port.device);
  const ProtectionDomain domain(ibv_alloc_pd(device.get()));
  const Route route{static_cast<uint8_t>(choice->port.number), static_cast<uint8_t>(choice->gid_index), 0, 0};
  Result<std::unique_ptr<ConnectionManager>> opened = Greetings::open(domain.get(), route, choice->port.mtu);
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  ConnectionManager& greetings = **opened;
  Address own{};
  own.global = choice->global;
  own.gid = choice->gid;
  own.lid = choice->port.lid;
  greetings.fill_in_address(own);
  greetings.set_addresses({own});

  // As to many peers at once.
  constexpr uint32_t kPeers = 100;
  uint32_t sent = 0, received = 0;
  bool was_full = false;
  Greeting greeting;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (received < kPeers && std::chrono::steady_clock::now() < deadline) {
    for (; sent < kPeers && greetings.has_room(); ++sent) {
      greeting.epoch = sent;
      ASSERT_TRUE(greetings.send(0, greeting).ok());
    }
    was_full |= sent < kPeers;
    for (Greeting theirs; greetings.receive(theirs); ++received) EXPECT_EQ(theirs.epoch, received);
  }
  EXPECT_EQ(received, kPeers);
  EXPECT_TRUE(was_full) << "the room is never asked for";
}

}  // namespace
}  // namespace ibcoll::verbs
