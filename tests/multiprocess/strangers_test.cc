// SPDX-License-Identifier: BSD-3-Clause
// UCX accepts every connection, and a malformed message ends the process. So only ranks may connect: no process
// of another machine, and none of the same, neither while ranks join nor later.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "tests/multiprocess/checked_call.h"
#include "tests/multiprocess/fork_job.h"
#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {
namespace {

constexpr int kStrangers = 2;
constexpr int kDescriptors = 256;  // more than a rank of this test opens

struct Shared {
  std::atomic<int> ports[2]{};  // of each rank's listener
  std::atomic<int> knocked{0}, entered{0}, done{0};
};

// The TCP port on which this process listens; 0: none.
int listening_port() {
  for (int descriptor = 0; descriptor < kDescriptors; ++descriptor) {
    int listens = 0, protocol = 0;
    socklen_t length = sizeof listens;
    if (::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || listens == 0) continue;
    if (::getsockopt(descriptor, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) != 0 || protocol != IPPROTO_TCP) continue;
    sockaddr_in address{};
    length = sizeof address;
    if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length) == 0) return ntohs(address.sin_port);
  }
  return 0;
}

// Tries for a while; the kernel would let it in at once. Sends what begins a UCX connection, and rubbish.
bool enter(const std::string& address, int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  ::inet_pton(AF_INET, address.c_str(), &to.sin_addr);
  (void)::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  pollfd entry{socket, POLLOUT, 0};
  int error = 1;
  socklen_t length = sizeof error;
  const bool entered =
      ::poll(&entry, 1, 300) == 1 && ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0;
  std::string bytes(4096, '\x01');
  std::memcpy(bytes.data(), "\xCA\xBF\x0C\xEA\x0D\xF0\xAD\xDE", 8);
  if (entered) (void)!::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  ::close(socket);
  return entered;
}

[[noreturn]] void knock(Shared& shared, const std::string (&addresses)[2]) {
  for (const std::atomic<int>& port : shared.ports)
    while (port == 0 && shared.done == 0) sleep_seconds(0.01);
  for (int rank = 0; rank < 2; ++rank)
    if (enter(addresses[rank], shared.ports[rank])) ++shared.entered;
  ++shared.knocked;
  ::_exit(0);
}

// A rank that joins listens before it knows the other ranks: strangers connect then, and the rank waits for the
// outcome.
struct KnockedAt {
  ForkedRank& self;
  Shared& shared;

  static int allgather(void* user, const void* send, void* receive, size_t bytes) {
    auto& [self, shared] = *static_cast<KnockedAt*>(user);
    if (shared.ports[self.rank] == 0) shared.ports[self.rank] = listening_port();
    for (int i = 0; shared.ports[self.rank] != 0 && shared.knocked < kStrangers && i < 2000; ++i) sleep_seconds(0.01);
    return self.bootstrap.allgather(self.bootstrap.user, send, receive, bytes);
  }
};

enum class Knocks { kWhileRanksJoin, kWhileRanksWork };

// Ranks work, or join, while strangers try to come in.
int body(ForkedRank& self, Shared& shared, Knocks when) {
  ibcoll_context_t context = nullptr;
  KnockedAt door{self, shared};
  const ibcoll_bootstrap_t knocked_at{sizeof knocked_at, self.rank, self.size, &KnockedAt::allgather, &door,
                                      nullptr,           0};
  const ibcoll_context_params_t params{sizeof params, when == Knocks::kWhileRanksJoin ? &knocked_at : &self.bootstrap};
  if (!expect_ok(ibcoll_context_create(&params, &context), "ibcoll_context_create")) return 1;
  shared.ports[self.rank] = listening_port();
  expect(shared.ports[self.rank] != 0, "no listener of UCX was found");
  CheckedCall call(ibcoll_team_world(context), {.collective = IBCOLL_ALLTOALL, .bytes = 1000});
  long long more = 1;
  for (uint64_t round = 0; more != 0 && complaints() == 0; ++round) {
    call.run(round);
    const long long mine = shared.knocked < kStrangers;
    expect_ok(ibcoll_allreduce(ibcoll_team_world(context), &mine, &more, 1, IBCOLL_INT64, IBCOLL_MAX), "allreduce");
  }
  expect_ok(ibcoll_context_destroy(context), "ibcoll_context_destroy");
  return complaints() > 0 ? 1 : 0;
}

class Strangers : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("UCX_TLS", "tcp", 1);
    ::setenv("IBCOLL_NET", "ucx", 1);
    ::setenv("IBCOLL_LOG", "error", 1);
    void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    shared_ = new (memory) Shared();
  }
  void TearDown() override {
    if (shared_ != nullptr) ::munmap(shared_, sizeof(Shared));
  }
  void check(const std::vector<Ending>& endings) {
    shared_->done = 1;
    for (const pid_t stranger : strangers_) ::waitpid(stranger, nullptr, 0);
    for (const Ending& ending : endings) {
      EXPECT_TRUE(ending.exited) << "a rank died of signal " << ending.code;
      EXPECT_EQ(ending.code, 0);
    }
    EXPECT_EQ(shared_->knocked, kStrangers);
    EXPECT_EQ(shared_->entered, 0);
  }
  Shared* shared_ = nullptr;
  std::vector<pid_t> strangers_;
};

TEST_F(Strangers, OfTheSameMachineCannotConnect) {
  if (!ForkJob::can_emulate_nodes()) GTEST_SKIP() << "no host names of our own here";
  ::setenv("UCX_NET_DEVICES", "lo", 1);
  for (const Knocks when : {Knocks::kWhileRanksJoin, Knocks::kWhileRanksWork}) {
    shared_ = new (shared_) Shared();
    strangers_.clear();
    for (int i = 0; i < kStrangers; ++i) {
      strangers_.push_back(::fork());
      if (strangers_.back() == 0) knock(*shared_, {"127.0.0.1", "127.0.0.1"});
    }
    check(ForkJob(2, 2).run([&](ForkedRank& self) { return body(self, *shared_, when); }, 60));
  }
}

TEST_F(Strangers, OfMachinesOfTheJobAndOfOthersCannotConnect) {
  if (const std::string why = Machines::missing(); !why.empty()) GTEST_SKIP() << why;
  ::setenv("UCX_NET_DEVICES", "eth0", 1);
  const Machines machines(3);
  for (const int machine : {1, 2}) {
    strangers_.push_back(machines.fork_on(machine));
    if (strangers_.back() == 0) knock(*shared_, {Machines::address(0), Machines::address(1)});
  }
  check(
      ForkJob(2, 2, machines).run([&](ForkedRank& self) { return body(self, *shared_, Knocks::kWhileRanksWork); }, 60));
}

}  // namespace
}  // namespace ibcoll::multiprocess
