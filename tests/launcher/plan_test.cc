// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace ibcoll::run {
namespace {

// A launcher inside of a rank: settings go to other hosts, the variables of the outer launcher do not.
TEST(Plan, OtherHostsGetTheSettingsOfThisProcess) {
  const std::vector<std::string> settings = {"IBCOLL_TEST_OF_PLAN=1", "UCX_TEST_OF_PLAN=2"};
  ::setenv("IBCOLL_TEST_OF_PLAN", "1", 1);
  ::setenv("UCX_TEST_OF_PLAN", "2", 1);
  ::setenv("OTHER_TEST_OF_PLAN", "3", 1);
  ::setenv("IBCOLL_RUN_RANK", "17", 1);
  Options options;
  options.programs.resize(1);
  options.programs.front().program = {"prog"};
  options.hosts = "127.0.0.1:1,other-host:2";
  const Result<std::vector<HostJob>> jobs = plan_job(options);
  for (const char* name : {"IBCOLL_TEST_OF_PLAN", "UCX_TEST_OF_PLAN", "OTHER_TEST_OF_PLAN", "IBCOLL_RUN_RANK"})
    ::unsetenv(name);
  ASSERT_TRUE(jobs.ok()) << jobs.status().text();
  ASSERT_EQ(jobs->size(), 2u);
  for (const HostJob& job : jobs.value()) {
    const std::vector<std::string>& environment = job.environment;
    const auto count = [&](std::string_view beginning) {
      return std::count_if(environment.begin(), environment.end(),
                           [&](const std::string& entry) { return entry.starts_with(beginning); });
    };
    EXPECT_EQ(job.remote, job.host == "other-host");
    for (const std::string& setting : settings) EXPECT_EQ(count(setting), job.remote ? 1 : 0) << setting;
    EXPECT_EQ(count("OTHER_TEST_OF_PLAN"), 0);
    EXPECT_EQ(count("IBCOLL_RUN_RANK"), 0);
  }
  EXPECT_EQ(jobs.value()[1].ranks, (std::vector<int>{1, 2}));
}

}  // namespace
}  // namespace ibcoll::run
