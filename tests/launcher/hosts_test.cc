// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/hosts.h"

#include <gtest/gtest.h>

#include <ctime>

namespace ibcoll::run {
namespace {

std::string shown(const Result<std::vector<HostEntry>>& hosts) {
  if (!hosts.ok()) return "error: " + hosts.status().text();
  std::string text;
  for (const HostEntry& host : hosts.value()) {
    text += text.empty() ? "" : " ";
    text += host.name + (host.slots ? fmt::format("={}", *host.slots) : "") +
            (host.max_slots ? fmt::format("<{}", *host.max_slots) : "");
  }
  return text;
}

TEST(HostList, NamesAndSlots) {
  EXPECT_EQ(shown(parse_host_list("h1:4,h2:12")), "h1=4 h2=12");
  EXPECT_EQ(shown(parse_host_list("h1")), "h1");
  EXPECT_EQ(shown(parse_host_list("me@h-1.example.org:2, h2")), "me@h-1.example.org=2 h2");
  EXPECT_EQ(shown(parse_host_list("[fd00::1]:3,[fe80::1%eth0]")), "fd00::1=3 fe80::1%eth0");
}

TEST(HostList, Mistakes) {
  for (const char* text : {"", ",", "h1,", "h1:", "h1:-1", "h1:4x", "h1:99999999999", "-oProxyCommand=x", "h1;reboot",
                           "h 1", "fd00::1", "[fd00::1", "[fd00::1]4", "h1:$(x)"}) {
    const auto hosts = parse_host_list(text);
    ASSERT_FALSE(hosts.ok()) << text;
    EXPECT_EQ(hosts.status().code(), IBCOLL_ERR_INVALID_ARGUMENT);
    EXPECT_TRUE(hosts.status().text().starts_with("--host ")) << hosts.status().text();
  }
}

TEST(HostList, AHostWithoutSlotsTakesNoRank) {
  EXPECT_EQ(shown(parse_host_list("h1:0,h2:2,h3")), "h2=2 h3");
  EXPECT_EQ(shown(parse_host_list("h1:0,h1,h2")), "h1=1 h2=1");
  EXPECT_EQ(shown(parse_host_list("h1:0")), "error: --host h1:0: no host has a slot");
  EXPECT_EQ(shown(parse_hostfile("h1 slots=0\nh2 slots=0 max_slots=2\nh3 slots=1\n", "f")), "h3=1");
  EXPECT_EQ(shown(parse_hostfile("h1:0\n", "f")), "error: f: no host has a slot");
  EXPECT_EQ(shown(parse_hostfile("h1 max_slots=0\n", "f")), "error: f:1: '0' is not a number of ranks");
}

TEST(HostList, CapitalsMakeNoOtherHost) {
  EXPECT_EQ(shown(parse_host_list("Node-1:2,node-1,NODE-1.example.org")), "Node-1=3 NODE-1.example.org=1");
  EXPECT_EQ(shown(parse_host_list("Me@h,me@h,me@H")), "Me@h=1 me@h=2") << "users are others";
}

TEST(Hostfile, LinesAndComments) {
  EXPECT_EQ(shown(parse_hostfile("# cluster\nh1:4\n\n  h2 slots=2 # old\r\nh3\t\n[fd00::1]:2", "f")),
            "h1=4 h2=2 h3 fd00::1=2");
}

TEST(Hostfile, MistakesNameTheLine) {
  EXPECT_EQ(shown(parse_hostfile("h1\nh2 slots=x\n", "dir/f")), "error: dir/f:2: 'x' is not a number of ranks");
  for (const char* line : {"h1 4", "h1:2 slots=4", "h1 slots=2 slots=2", "h1 slots", "h1 =", "h1 max=3"}) {
    EXPECT_EQ(
        shown(parse_hostfile(line, "f")),
        fmt::format("error: f:1: '{}': expected HOST, HOST:RANKS, HOST slots=RANKS or HOST slots=RANKS max_slots=RANKS",
                    line));
  }
  EXPECT_EQ(shown(parse_hostfile("h1 slots=4 max_slots=2\n", "f")),
            "error: f:1: host h1: max_slots=2 is below slots=4");
  EXPECT_EQ(shown(parse_hostfile(std::string(1 << 20, '\1'), "f")).size(),
            80 + std::string("error: f:1: '' is not a host name").size());
  EXPECT_EQ(shown(parse_hostfile("# nothing\n", "f")), "error: f: no host in it");
}

TEST(HostList, MentionsOfOneHostAddUp) {
  EXPECT_EQ(shown(parse_host_list("h1,h1")), "h1=2");
  EXPECT_EQ(shown(parse_host_list("h1,h2,h1")), "h1=2 h2=1") << "in the order of their first mention";
  EXPECT_EQ(shown(parse_host_list("h1:4,h1,h2")), "h1=5 h2=1");
  EXPECT_EQ(shown(parse_host_list("h1:1000000,h1:1000000")), "h1=1048576");
}

TEST(Hostfile, ALineForEachSlot) { EXPECT_EQ(shown(parse_hostfile("h1\nh1\nh2\nh2\nh2\n", "f")), "h1=2 h2=3"); }

TEST(Hostfile, MaxSlots) {
  EXPECT_EQ(shown(parse_hostfile("h1 slots=2 max_slots=4\nh2 max-slots=3\n", "f")), "h1=2<4 h2<3");
}

TEST(Hostfile, ManyLinesAreReadInNoTime) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += fmt::format("h{}\n", i);
  const std::clock_t begin = std::clock();  // of this process: others may keep the machine busy
  EXPECT_EQ(parse_hostfile(text, "f").value().size(), 200'000U);
  EXPECT_LT(std::clock() - begin, 3 * CLOCKS_PER_SEC);
}

}  // namespace
}  // namespace ibcoll::run
