// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/allocation.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>

#include "runtime/base/unique_fd.h"

namespace ibcoll::run {
namespace {

std::string joined(const Result<std::vector<std::string>>& hosts) {
  if (!hosts.ok()) return "error";
  std::string text;
  for (const std::string& host : hosts.value()) text += (text.empty() ? "" : " ") + host;
  return text;
}

TEST(Slurm, NodeLists) {
  EXPECT_EQ(joined(slurm_hosts("n1")), "n1");
  EXPECT_EQ(joined(slurm_hosts("n1,m2")), "n1 m2");
  EXPECT_EQ(joined(slurm_hosts("n[001-003,7],m[9-11]")), "n001 n002 n003 n7 m9 m10 m11");
  EXPECT_EQ(joined(slurm_hosts("r[1-2]n[08-09]-ib")), "r1n08-ib r1n09-ib r2n08-ib r2n09-ib");
  for (const char* text : {"n[1-", "n[]", "n[a-b]", "n[3-1]", "n[1-99999999999]", "n[1-]"})
    EXPECT_EQ(joined(slurm_hosts(text)), "error") << text;
  for (const char* text : {"n[1-9999999]", "n[1-1048577]", "n[1-6,7-1400000]", "r[1-1025]n[1-1024]"})
    EXPECT_TRUE(slurm_hosts(text).status().text().ends_with("' are more than 1048576 hosts, and no job has more ranks"))
        << text << ": " << slurm_hosts(text).status().text();
}

TEST(Slurm, Counts) {
  EXPECT_EQ(slurm_counts("4(x2),3").value(), (std::vector<int>{4, 4, 3}));
  EXPECT_EQ(slurm_counts("16").value(), (std::vector<int>{16}));
  for (const char* text : {"", "x", "4(x", "4(x2", "4(xx)", "0", "4(x9999999)", "-1"})
    EXPECT_FALSE(slurm_counts(text).ok()) << text;
}

class AllocationTest : public testing::Test {
 protected:
  void TearDown() override {
    for (const char* name : {"SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE",
                             "PBS_NODEFILE", "LSB_MCPU_HOSTS"})
      ::unsetenv(name);
  }

  static std::string shown() {
    const Result<std::optional<Allocation>> found = allocation_here();
    if (!found.ok()) return "error: " + found.status().text();
    return found.value() ? found.value()->source + " " + host_list(found.value()->hosts) : "none";
  }
};

TEST_F(AllocationTest, None) { EXPECT_EQ(shown(), "none"); }

TEST_F(AllocationTest, EmptyVariablesCountAsUnset) {
  for (const char* name : {"SLURM_JOB_NODELIST", "SLURM_TASKS_PER_NODE", "PBS_NODEFILE", "LSB_MCPU_HOSTS"})
    ::setenv(name, "", 1);
  EXPECT_EQ(shown(), "none");
  ::setenv("SLURM_NODELIST", "n1", 1);
  ::setenv("SLURM_JOB_CPUS_PER_NODE", "4", 1);
  EXPECT_EQ(shown(), "Slurm allocation (SLURM_NODELIST) n1:4");
}

TEST_F(AllocationTest, OfSlurm) {
  ::setenv("SLURM_JOB_NODELIST", "n[1-3]", 1);
  EXPECT_EQ(shown(), "Slurm allocation (SLURM_JOB_NODELIST) n1,n2,n3");
  ::setenv("SLURM_TASKS_PER_NODE", "4(x2),1", 1);
  EXPECT_EQ(shown(), "Slurm allocation (SLURM_JOB_NODELIST) n1:4,n2:4,n3:1");
  for (const auto& [counts, hosts] : {std::pair("4", 1), {"4(x2)", 2}, {"4(x4)", 4}, {"4(x2),1,1", 4}}) {
    ::setenv("SLURM_TASKS_PER_NODE", counts, 1);
    EXPECT_EQ(shown(), fmt::format("error: SLURM_TASKS_PER_NODE: '{}' has numbers for {} hosts, and SLURM_JOB_NODELIST "
                                   "names 3; --host or --hostfile names the hosts instead",
                                   counts, hosts));
  }
  ::setenv("SLURM_TASKS_PER_NODE", "many", 1);
  EXPECT_EQ(shown(), "error: SLURM_TASKS_PER_NODE: 'many' is damaged; --host or --hostfile names the hosts instead");
  ::setenv("SLURM_JOB_NODELIST", "-oProxyCommand=x", 1);
  EXPECT_EQ(shown(), "error: SLURM_JOB_NODELIST:1: '-oProxyCommand=x' is not a host name");
}

TEST_F(AllocationTest, OfLsf) {
  ::setenv("LSB_MCPU_HOSTS", "h1 4 h2 2 ", 1);
  EXPECT_EQ(shown(), "LSF allocation (LSB_MCPU_HOSTS) h1:4,h2:2");
  ::setenv("LSB_MCPU_HOSTS", "h1 0 h2 2", 1);
  EXPECT_EQ(shown(), "LSF allocation (LSB_MCPU_HOSTS) h2:2");
  ::setenv("LSB_MCPU_HOSTS", "ha 2 hb", 1);
  EXPECT_EQ(shown(),
            "error: LSB_MCPU_HOSTS: 'ha 2 hb' has no number of slots behind host hb; "
            "--host or --hostfile names the hosts instead");
}

TEST_F(AllocationTest, OfPbs) {
  ::setenv("PBS_NODEFILE", "/no/such/file", 1);
  EXPECT_EQ(shown(),
            "error: PBS_NODEFILE: /no/such/file: cannot be read: No such file or directory; "
            "--host or --hostfile names the hosts instead");
  char path[] = "/tmp/ibcoll_nodefile_XXXXXX";
  const UniqueFd file(::mkstemp(path));
  const std::string_view text = "h1\nh1\nh2\nh1\n";
  ASSERT_EQ(::write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ::setenv("PBS_NODEFILE", path, 1);
  EXPECT_EQ(shown(), "PBS allocation (PBS_NODEFILE) h1:3,h2:1");
  ::unlink(path);
}

TEST(HostListText, ManyHostsAreCut) {
  std::vector<HostEntry> hosts;
  for (int i = 0; i < 20; ++i) hosts.push_back({fmt::format("h{}", i), 2, {}});
  EXPECT_TRUE(host_list(hosts).ends_with("h15:2 and 4 more")) << host_list(hosts);
}

}  // namespace
}  // namespace ibcoll::run
