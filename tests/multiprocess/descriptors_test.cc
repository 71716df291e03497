// SPDX-License-Identifier: BSD-3-Clause
// Few descriptors: the soft limit is raised; where the hard limit forbids that, no rank joins, and the error says why.
// And what a context opens: no program that a rank starts gets it, no other process can connect to it for long.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/multiprocess/checked_call.h"
#include "tests/multiprocess/fork_job.h"
#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {
namespace {

std::vector<Ending> join_with(rlim_t soft, rlim_t hard, ibcoll_status_t wanted) {
  ::setenv("UCX_TLS", "tcp", 1);
  ::setenv("UCX_NET_DEVICES", "lo", 1);
  ::setenv("IBCOLL_LOG", "error", 1);
  const auto body = [=](ForkedRank& self) {
    const rlimit limit{soft, hard};
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 2;
    ibcoll_context_t context = nullptr;
    const ibcoll_context_params_t params{sizeof params, &self.bootstrap};
    const ibcoll_status_t status = ibcoll_context_create(&params, &context);
    if (wanted != IBCOLL_OK)
      expect_error(status, wanted, "ulimit -Hn", "ibcoll_context_create");
    else if (expect_ok(status, "ibcoll_context_create")) {
      CheckedCall(ibcoll_team_world(context), {.collective = IBCOLL_ALLTOALL, .bytes = 100}).run(0);
      expect_ok(ibcoll_context_destroy(context), "ibcoll_context_destroy");
    }
    return complaints() > 0 ? 1 : 0;
  };
  return ForkJob(4, 4).run(body, 60);
}

// Four ranks, each of which runs the body and returns 0.
void on_one_node_and_two(const std::function<int(ForkedRank&)>& body) {
  for (const int nodes : {1, 2}) {
    if (nodes > 1 && !ForkJob::can_emulate_nodes()) continue;
    for (const Ending& ending : ForkJob(4, nodes).run(body, 60)) {
      EXPECT_TRUE(ending.exited) << nodes << " nodes: signal " << ending.code;
      EXPECT_EQ(ending.code, 0) << nodes << " nodes";
    }
  }
}

TEST(Descriptors, TheSoftLimitIsRaised) {
  if (!ForkJob::can_emulate_nodes()) GTEST_SKIP() << "no host names of our own here";
  for (const rlim_t soft : {11, 14, 20}) {
    for (const Ending& ending : join_with(soft, 200, IBCOLL_OK)) {
      EXPECT_TRUE(ending.exited) << soft << ": signal " << ending.code;
      EXPECT_EQ(ending.code, 0) << soft;
    }
  }
}

TEST(Descriptors, TheHardLimitIsNamed) {
  if (!ForkJob::can_emulate_nodes()) GTEST_SKIP() << "no host names of our own here";
  for (const Ending& ending : join_with(20, 20, IBCOLL_ERR_SYSTEM)) {
    EXPECT_TRUE(ending.exited) << "signal " << ending.code;
    EXPECT_EQ(ending.code, 0);
  }
}

std::vector<int> open_descriptors() {
  std::vector<int> open;
  for (int fd = 0; fd < 256; ++fd)
    if (::fcntl(fd, F_GETFD) >= 0) open.push_back(fd);
  return open;
}

bool is_local_door(int fd) {
  int family = 0, listens = 0;
  socklen_t length = sizeof(int);
  return ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length) == 0 && family == AF_UNIX &&
         ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0 && listens != 0;
}

TEST(Descriptors, AreThisProcesssAlone) {
  ::setenv("UCX_TLS", "tcp", 1);
  ::setenv("UCX_NET_DEVICES", "lo", 1);
  ::setenv("IBCOLL_LOG", "error", 1);
  const auto body = [](ForkedRank& self) {
    const std::vector<int> before = open_descriptors();
    ibcoll_context_t context = nullptr;
    const ibcoll_context_params_t params{sizeof params, &self.bootstrap};
    if (!expect_ok(ibcoll_context_create(&params, &context), "ibcoll_context_create")) return 1;
    CheckedCall(ibcoll_team_world(context), {.collective = IBCOLL_ALLTOALL, .bytes = 100}).run(0);
    for (const int fd : open_descriptors()) {
      if (std::find(before.begin(), before.end(), fd) != before.end()) continue;
      const std::string target = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd));
      if (target.starts_with("pipe:") || target.ends_with("[eventpoll]")) continue;  // UCX's own: they lead nowhere
      expect((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0, "a program that this rank starts gets {}", target);
      expect(!is_local_door(fd), "{}: the node's segment is handed out still", target);
    }
    expect_ok(ibcoll_context_destroy(context), "ibcoll_context_destroy");
    return 0;
  };
  on_one_node_and_two(body);
}

// `errors` is where the test complains: descriptor 2 is closed.
void expect_low_ones_closed(const char* when, int errors) {
  std::string open;
  for (int fd = 0; fd < 3; ++fd)
    if (::write(fd, "x", 1) >= 0 || errno != EBADF || ::fcntl(fd, F_GETFD) >= 0) open += fmt::format(" {}", fd);
  if (open.empty()) return;
  ::dup2(errors, STDERR_FILENO);
  complain(fmt::format("after {} these are open, and take what the program prints:{}", when, open));
}

// Daemons and schedulers start programs so. The program's output must not land in a file or socket of ibcoll.
TEST(Descriptors, AreNeverTheStandardOnes) {
  ::setenv("UCX_TLS", "tcp", 1);
  ::setenv("UCX_NET_DEVICES", "lo", 1);
  ::setenv("IBCOLL_LOG", "warn", 1);
  ::setenv("IBCOLL_NO_SUCH_SETTING", "1", 1);  // ibcoll warns of it
  const std::string folder = std::filesystem::temp_directory_path() / fmt::format("low.{}", ::getpid());
  std::filesystem::create_directory(folder);
  ::setenv("IBCOLL_TRACE", folder.c_str(), 1);
  const auto body = [](ForkedRank& self) {
    const int errors = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
    for (int fd = 0; fd < 3; ++fd) ::close(fd);
    ibcoll_context_t context = nullptr;
    const ibcoll_context_params_t params{sizeof params, &self.bootstrap};
    if (!expect_ok(ibcoll_context_create(&params, &context), "ibcoll_context_create")) return 1;
    expect_low_ones_closed("ibcoll_context_create", errors);
    for (const uint64_t bytes : {100, 100'000})
      CheckedCall(ibcoll_team_world(context), {.collective = IBCOLL_ALLTOALL, .bytes = bytes}).run(0);
    expect_low_ones_closed("two collectives", errors);
    expect_ok(ibcoll_context_destroy(context), "ibcoll_context_destroy");
    expect_low_ones_closed("ibcoll_context_destroy", errors);
    return 0;
  };
  on_one_node_and_two(body);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ibcoll::multiprocess
