// SPDX-License-Identifier: BSD-3-Clause
// Which transport between nodes the ranks of a job choose by their messages. Opening them: tests/multiprocess.
#include "runtime/context/network_choice.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ibcoll {
namespace {

// Messages of three ranks that have opened all modules that open early, but for rank `without`.
std::vector<OpenNodeMessage> messages(int without = -1) {
  std::vector<OpenNodeMessage> all(3);
  for (OpenNodeMessage& message : all)
    for (OpenNodeMessage::Network& network : message.networks) network.opened = network.expected = 1;
  if (without < 0) return all;
  for (OpenNodeMessage::Network& network : all[static_cast<size_t>(without)].networks) {
    network.opened = network.expected = 0;
    copy_text("no device", network.why_not);
  }
  return all;
}

NetworkChoice decided(const std::string& wanted, const std::vector<OpenNodeMessage>& all) {
  NetworkChoice choice(wanted);
  choice.decide(all);
  choice.explain(all);
  return choice;
}

const std::string kAuto = "auto", kUcx = "ucx", kVerbs = "verbs", kShm = "shm";

TEST(NetworkChoice, TheFirstModuleThatAllRanksHaveOpenedIsUsed) {
  const NetworkChoice choice = decided(kAuto, messages());
  EXPECT_FALSE(choice.needs_routes());
  EXPECT_EQ(choice.reason(), "every rank has an active RDMA port");
}

TEST(NetworkChoice, WhatOneRankHasNotOpenedNoRankUses) {
  const NetworkChoice choice = decided(kAuto, messages(1));
  EXPECT_TRUE(choice.needs_routes());
  EXPECT_EQ(choice.reason(), "verbs is not used: rank 1: no device");
}

TEST(NetworkChoice, TheSettingDecides) {
  const NetworkChoice ucx = decided(kUcx, messages()), verbs = decided(kVerbs, messages());
  EXPECT_TRUE(ucx.needs_routes());
  EXPECT_FALSE(verbs.needs_routes());
  EXPECT_EQ(ucx.reason(), "demanded by IBCOLL_NET");
  EXPECT_EQ(verbs.reason(), "demanded by IBCOLL_NET");
}

TEST(NetworkChoice, SharedMemoryDoesNotJoinNodes) {
  NetworkChoice choice = decided(kShm, messages());
  EXPECT_FALSE(choice.needs_routes());
  const Status status = choice.open({}, 2).status();
  EXPECT_EQ(status.code(), IBCOLL_ERR_CONFIG);
  EXPECT_EQ(status.text(), "IBCOLL_NET=shm, but the job has 2 nodes; use IBCOLL_NET=auto");
}

}  // namespace
}  // namespace ibcoll
