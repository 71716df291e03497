// SPDX-License-Identifier: BSD-3-Clause
// A rank ends, and ibcoll_run reports to the others how. The ranks are this program, started by the launcher.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/multiprocess/checked_call.h"
#include "tests/multiprocess/persistent_call.h"
#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {
namespace {

// How rank 1 ends: "killed", "unseen", "exec" (it becomes "another", which creates a context, too), or its exit status.
constexpr const char* kRole = "IBCOLL_TEST_ENDS";

// The process that the launcher started ends when the process that is the rank says so, and that one continues. So no
// transport can see anything. Returns where to say it.
int run_in_child() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) ::_exit(1);
  if (::fork() == 0) return ends[1];
  ::close(ends[1]);
  char byte = 0;
  ::_exit(::read(ends[0], &byte, 1) == 1 ? 0 : 1);
}

void end_as(const std::string& role, int launched) {
  if (role == "killed") ::raise(SIGKILL);
  if (role == "unseen" && ::write(launched, "x", 1) == 1) sleep_seconds(30);
  if (role == "exec") {
    ::setenv(kRole, "another", 1);
    const std::string filter = "--gtest_filter=" + testing::GTEST_FLAG(filter);
    ::execl("/proc/self/exe", "another", filter.c_str(), nullptr);
  }
  ::_exit(std::atoi(role.c_str()));
}

void print(const std::string& line) { (void)!::write(STDOUT_FILENO, line.data(), line.size()); }

// The process is the rank that it was. The others will not come.
void create_another_context() {
  const double begin = seconds_now();
  ibcoll_context_t context = nullptr;
  const ibcoll_status_t status = ibcoll_context_create(nullptr, &context);
  print(
      fmt::format("ANOTHER {} after {:.1f} s: {}\n", status != IBCOLL_OK, seconds_now() - begin, ibcoll_last_error()));
  ::_exit(0);
}

// Waits in a collective for rank 1, and prints the error that it gets and how soon.
void be_a_rank(const std::string& role) {
  ::signal(SIGTERM, SIG_IGN);  // the launcher ends the job, too
  if (role == "another") return create_another_context();
  const bool unseen = role == "unseen" && std::string(std::getenv("IBCOLL_RUN_RANK")) == "1";
  const int launched = unseen ? run_in_child() : -1;
  ibcoll_context_t context = nullptr;
  ASSERT_EQ(ibcoll_context_create(nullptr, &context), IBCOLL_OK) << ibcoll_last_error();
  // UCX 1.13 aborts when a peer dies while the two connect to each other (docs/design/0004-transports.md).
  for (uint64_t round = 0; round < 3; ++round) {
    PersistentCall all(ibcoll_team_world(context), {.collective = IBCOLL_ALLTOALL, .bytes = 8, .algorithm = "direct"});
    ASSERT_TRUE(all.start(round) && all.wait(round)) << ibcoll_last_error();
  }
  const double begin = seconds_now();
  if (ibcoll_context_rank(context) == 1) {
    sleep_seconds(0.2);  // the others wait for it
    end_as(role, launched);
  }
  const ibcoll_status_t status = ibcoll_barrier(ibcoll_team_world(context));
  print(fmt::format("TOLD {} after {:.1f} s: {}\n", status == IBCOLL_ERR_PEER_FAILED, seconds_now() - begin,
                    ibcoll_last_error()));
  ::_exit(0);
}

// Returns what the job prints.
std::string run_job(const std::string& role, const std::string& nodes) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string launcher = std::filesystem::path(self).parent_path() / "ibcoll_run";
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  const std::string filter = fmt::format("--gtest_filter={}.{}", test.test_suite_name(), test.name());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "pipe2 fails";
  const pid_t job = ::fork();
  if (job == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    ::setenv(kRole, role.c_str(), 1);
    for (const char* const name : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"}) ::unsetenv(name);  // to be run whole
    ::execl(launcher.c_str(), launcher.c_str(), "-n", "4", "--nodes", nodes.c_str(), "--net", "ucx", "--timeout", "150",
            self.c_str(), filter.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(got));
  ::close(ends[0]);
  ::waitpid(job, nullptr, 0);
  return text;
}

// The number of ranks that learned soon that rank 1 failed, and `how`.
int count_notified(const std::string& text, const std::string& how) {
  const std::string begin = "TOLD true after ";
  int notified = 0, explained = 0;
  for (size_t at = 0; (at = text.find(begin, at)) != std::string::npos; ++notified) {
    const std::string line = text.substr(at, text.find('\n', at) - at);
    at += line.size();
    EXPECT_LT(std::atof(line.c_str() + begin.size()), 60) << "IBCOLL_TIMEOUT is 600: " << line;
    EXPECT_NE(line.find("rank 1 of the job"), std::string::npos) << line;
    explained += line.find(how) != std::string::npos;
  }
  EXPECT_EQ(notified, 3) << text;
  return explained;
}

struct HowItEnds {
  const char* name;
  const char* role;
  const char* nodes;
  const char* how;  // in the others' errors
};
class ReportedDeath : public testing::TestWithParam<HowItEnds> {};

TEST_P(ReportedDeath, SaysHowTheRankEnded) {
  if (const char* const role = std::getenv(kRole); role && std::getenv("IBCOLL_RUN_RANK")) return be_a_rank(role);
  ::setenv("UCX_TLS", "tcp", 1);
  ::setenv("IBCOLL_TIMEOUT", "600", 1);
  ::setenv("IBCOLL_LOG", "error", 1);
  // Where the transport sees the death as well, and the launcher gets no processor for a tenth of a second, its report
  // comes too late for a report.
  const std::string how_it_ends = GetParam().role;
  const bool may_be_late = how_it_ends != "unseen" && how_it_ends != "exec";
  std::string text;
  int explained = 0;
  for (int tries = may_be_late ? 30 : 1; tries > 0 && explained < 3; --tries) {
    text = run_job(GetParam().role, GetParam().nodes);
    explained = count_notified(text, GetParam().how);
  }
  EXPECT_EQ(explained, 3) << text;
  EXPECT_EQ(text.find("ANOTHER true after ") != std::string::npos, how_it_ends == "exec") << text;
}

INSTANTIATE_TEST_SUITE_P(Of, ReportedDeath,
                         testing::Values(HowItEnds{"Killed_1node", "killed", "1", ") was killed by signal 9 (Killed)"},
                                         HowItEnds{"Killed_4nodes", "killed", "4", ") was killed by signal 9 (Killed)"},
                                         HowItEnds{"Status3_2nodes", "3", "2", ") exited with status 3"},
                                         HowItEnds{"Unseen_1node", "unseen", "1", ") exited with status 0"},
                                         HowItEnds{"Unseen_2nodes", "unseen", "2", ") exited with status 0"},
                                         HowItEnds{"Status0_2nodes", "0", "2", ") exited with status 0"},
                                         HowItEnds{"Exec_1node", "exec", "1", "closed its connection to ibcoll_run"},
                                         HowItEnds{"Exec_2nodes", "exec", "2", ""}),  // UCX says so, and sooner
                         [](const testing::TestParamInfo<HowItEnds>& info) { return info.param.name; });

}  // namespace
}  // namespace ibcoll::multiprocess
