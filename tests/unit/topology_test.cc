// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/topology.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "runtime/base/own_cpus.h"
#include "tests/conformance/refuse_system_call.h"

namespace ibcoll {
namespace {

CpuShare share(uint64_t cpus, double quota = kNoQuota) {
  CpuShare share;
  share.cpus[0] = cpus;
  share.quota = quota;
  return share;
}

TEST(Topology, NodesAreNumberedByTheirLowestRank) {
  EXPECT_EQ(number_nodes({"b", "a", "b", "c", "a"}), (std::vector<int>{0, 1, 0, 2, 1}));
  EXPECT_EQ(number_nodes({"x"}), std::vector<int>{0});
  EXPECT_EQ(number_nodes({"", "", ""}), (std::vector<int>{0, 0, 0}));
}

TEST(Topology, RanksThatShareCoresAreCounted) {
  EXPECT_EQ(ranks_per_core({share(0b11), share(0b11)}), 1.0);
  EXPECT_EQ(ranks_per_core({share(0b11), share(0b11), share(0b11), share(0b11)}), 2.0);
  EXPECT_EQ(ranks_per_core({share(0b01), share(0b10)}), 1.0);  // bound, each to its own
  EXPECT_EQ(ranks_per_core({share(0b01), share(0b01)}), 2.0);  // bound to the same
  EXPECT_EQ(ranks_per_core({share(0xFF)}), 1.0);               // never less than one
}

TEST(Topology, OneCpuForAllIsWhatNobodyExceeds) {
  EXPECT_TRUE(share_one_cpu({share(0b10), share(0b10)}));
  EXPECT_TRUE(share_one_cpu({share(0b10)}));
  EXPECT_FALSE(share_one_cpu({share(0b10), share(0b01)}));
  EXPECT_FALSE(share_one_cpu({share(0b11), share(0b11)}));
  EXPECT_FALSE(share_one_cpu({share(0b11, 1.0), share(0b11, 1.0)})) << "a quota says how long, not where";
}

TEST(Topology, AQuotaIsWorthCores) {
  EXPECT_EQ(ranks_per_core({share(0xFF, 2.0), share(0xFF, 2.0), share(0xFF, 2.0), share(0xFF, 2.0)}), 2.0);
  EXPECT_EQ(ranks_per_core({share(0b11, 0.5)}), 2.0);
}

// A machine's cgroup files in a folder of the test's own.
class CgroupQuota : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "cgroup.XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void file(const std::string& path, const std::string& content) {
    const std::filesystem::path whole = root_ + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << content << '\n';
  }
  double cores() const { return cgroup_cores(root_); }

  std::string root_;
};

TEST_F(CgroupQuota, OfVersion2) {
  file("/proc/self/cgroup", "0::/jobs/mine");
  EXPECT_EQ(cores(), kNoQuota);
  file("/sys/fs/cgroup/jobs/mine/cpu.max", "max 100000");
  EXPECT_EQ(cores(), kNoQuota);
  file("/sys/fs/cgroup/jobs/mine/cpu.max", "150000 100000");
  EXPECT_EQ(cores(), 1.5);
}

TEST_F(CgroupQuota, OfAGroupAboveHoldsToo) {
  file("/proc/self/cgroup", "0::/jobs/mine");
  file("/sys/fs/cgroup/jobs/mine/cpu.max", "400000 100000");
  file("/sys/fs/cgroup/jobs/cpu.max", "200000 100000");
  EXPECT_EQ(cores(), 2.0);
  file("/sys/fs/cgroup/cpu.max", "50000 100000");
  EXPECT_EQ(cores(), 0.5);
}

TEST_F(CgroupQuota, OfVersion1) {
  file("/proc/self/cgroup", "9:name=systemd:/a\n5:cpuset:/b\n4:cpu,cpuacct:/jobs/mine\n0::/c");
  file("/sys/fs/cgroup/cpu/jobs/mine/cpu.cfs_quota_us", "-1");
  file("/sys/fs/cgroup/cpu/jobs/mine/cpu.cfs_period_us", "100000");
  EXPECT_EQ(cores(), kNoQuota);
  file("/sys/fs/cgroup/cpu/jobs/mine/cpu.cfs_quota_us", "250000");
  EXPECT_EQ(cores(), 2.5);
}

// Without a cgroup namespace a container's path is the host's, while its own group is what is mounted.
TEST_F(CgroupQuota, OfAContainerThatSeesItsGroupOnly) {
  file("/proc/self/cgroup", "4:cpu:/docker/0123");
  file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000");
  file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "50000");
  EXPECT_EQ(cores(), 2.0);
}

TEST_F(CgroupQuota, IsNoneWhereNothingIsReadable) {
  EXPECT_EQ(cores(), kNoQuota);
  file("/proc/self/cgroup", "rubbish\n0:\n0::/x");
  file("/sys/fs/cgroup/x/cpu.max", "fast");
  EXPECT_EQ(cores(), kNoQuota);
}

// As under a seccomp filter: then all ranks of the machine share all of its CPUs.
TEST(Topology, ProcessorsThatTheKernelHidesAreThoseOfTheMachine) {
  const pid_t child = ::fork();
  if (child == 0) {
    conformance::refuse_system_call(SYS_sched_getaffinity);
    const bool hidden = own_cpus().empty();
    ::_exit(hidden && ranks_per_core({cpu_share()}) == 1.0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Topology, ThisProcessHasACoreAndAnIdentity) {
  const CpuShare mine = cpu_share();
  uint64_t any = 0;
  for (const uint64_t cpus : mine.cpus) any |= cpus;
  EXPECT_NE(any, 0u);
  EXPECT_GT(mine.quota, 0.0);
  EXPECT_FALSE(node_identity().empty());
  EXPECT_EQ(node_identity(), node_identity());
}

// Ranks of two containers can neither pass a socket of an abstract name to each other nor read each other's memory.
TEST(Topology, ANamespaceOfUsersOrNetworksIsANodeOfItsOwn) {
  enum Outcome { kOthers, kSame, kRefused };
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Outcome outcome = kOthers;
    for (const int kind : {CLONE_NEWUSER, CLONE_NEWNET}) {
      const std::string before = node_identity();
      if (::unshare(kind) != 0) ::_exit(kRefused);
      if (node_identity() == before) outcome = kSame;
    }
    ::_exit(outcome);
  }
  int ended = 0;
  ASSERT_EQ(::waitpid(child, &ended, 0), child);
  ASSERT_TRUE(WIFEXITED(ended)) << ended;
  if (WEXITSTATUS(ended) == kRefused) GTEST_SKIP() << "this machine does not let a process have namespaces of its own";
  EXPECT_EQ(WEXITSTATUS(ended), kOthers);
}

}  // namespace
}  // namespace ibcoll
