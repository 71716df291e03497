// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/hosts.h"

#include <gtest/gtest.h>

namespace ibcoll::run {
namespace {

std::string shown(const Result<std::vector<HostEntry>>& hosts) {
  if (!hosts.ok()) return "error: " + hosts.status().text();
  std::string text;
  for (const HostEntry& host : hosts.value()) {
    text += text.empty() ? "" : " ";
    text += host.name + (host.slots ? fmt::format("={}", *host.slots) : "");
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
  for (const char* text : {"", ",", "h1,", "h1:", "h1:0", "h1:-1", "h1:4x", "h1:99999999999", "h1:4,h1:2",
                           "-oProxyCommand=x", "h1;reboot", "h 1", "fd00::1", "[fd00::1", "[fd00::1]4", "h1:$(x)"}) {
    const auto hosts = parse_host_list(text);
    ASSERT_FALSE(hosts.ok()) << text;
    EXPECT_EQ(hosts.status().code(), IBCOLL_ERR_INVALID_ARGUMENT);
    EXPECT_TRUE(hosts.status().text().starts_with("--host ")) << hosts.status().text();
  }
}

TEST(Hostfile, LinesAndComments) {
  EXPECT_EQ(shown(parse_hostfile("# cluster\nh1:4\n\n  h2 slots=2 # old\r\nh3\t\n[fd00::1]:2", "f")),
            "h1=4 h2=2 h3 fd00::1=2");
}

TEST(Hostfile, MistakesNameTheLine) {
  EXPECT_EQ(shown(parse_hostfile("h1\nh2 slots=x\n", "dir/f")), "error: dir/f:2: 'x' is not a number of ranks");
  EXPECT_EQ(shown(parse_hostfile("h1\n#\n\nh1:2\n", "f")),
            "error: f:4: host h1 is listed twice; add its ranks up in one entry");
  EXPECT_EQ(shown(parse_hostfile("h1 4\n", "f")), "error: f:1: 'h1 4': expected HOST, HOST:RANKS or HOST slots=RANKS");
  EXPECT_EQ(shown(parse_hostfile("h1:2 slots=4\n", "f")),
            "error: f:1: 'h1:2 slots=4': expected HOST, HOST:RANKS or HOST slots=RANKS");
  EXPECT_EQ(shown(parse_hostfile("# nothing\n", "f")), "error: f: no host in it");
}

}  // namespace
}  // namespace ibcoll::run
