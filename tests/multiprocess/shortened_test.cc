// SPDX-License-Identifier: BSD-3-Clause
// Another process of the same user opens the memory that the ranks of a node share, and tries to cut it off under them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "tests/multiprocess/checked_call.h"
#include "tests/multiprocess/fork_job.h"
#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {
namespace {

// How the stranger ends.
enum Found { kRefused, kShortened, kNothing };

Found shorten(pid_t rank) {
  Found found = kNothing;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", rank), gone)) {
    if (!std::filesystem::read_symlink(entry.path(), gone).string().starts_with("/memfd:ibcoll")) continue;
    const int fd = ::open(entry.path().c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) continue;
    for (const off_t bytes : {4096, 0})
      if (::ftruncate(fd, bytes) == 0 || errno != EPERM) return kShortened;
    found = kRefused;
    ::close(fd);
  }
  return found;
}

// A process that has nothing of the rank, as it is forked before the rank joins, and acts on request.
class Stranger {
 public:
  Stranger() {
    const pid_t rank = ::getpid();
    if (::pipe2(orders_, O_CLOEXEC) != 0) return;
    pid_ = ::fork();
    if (pid_ != 0) return;
    char order = 0;
    ::_exit(::read(orders_[0], &order, 1) == 1 ? shorten(rank) : kNothing);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  ~Stranger() {
    for (const int end : orders_) ::close(end);
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  }
  Found act() {
    int ended = 0;
    if (pid_ < 0 || ::write(orders_[1], "!", 1) != 1 || ::waitpid(std::exchange(pid_, -1), &ended, 0) < 0)
      return kNothing;
    return WIFEXITED(ended) ? static_cast<Found>(WEXITSTATUS(ended)) : kNothing;
  }

 private:
  int orders_[2] = {-1, -1};
  pid_t pid_ = -1;
};

int share_memory(ForkedRank& self) {
  Stranger stranger;
  ibcoll_context_t context = nullptr;
  const ibcoll_context_params_t params{sizeof params, &self.bootstrap};
  if (!expect_ok(ibcoll_context_create(&params, &context), "ibcoll_context_create")) return 1;
  const ibcoll_team_t world = ibcoll_team_world(context);
  CheckedCall call(world, {.collective = IBCOLL_ALLTOALL, .bytes = 50'000});
  call.run(0);
  const Found found = stranger.act();
  expect(found == kRefused, "the node's memory {}", found == kShortened ? "was cut off" : "was not found");
  for (uint64_t round = 1; round < 5; ++round) call.run(round);
  CheckedCall first(world, {.collective = IBCOLL_ALLGATHER, .bytes = 3'000'000});  // with memory not used before
  first.run(0);
  expect_ok(ibcoll_context_destroy(context), "ibcoll_context_destroy");
  return complaints() > 0 ? 1 : 0;
}

TEST(SharedMemory, CannotBeShortened) {
  ::setenv("IBCOLL_LOG", "error", 1);
  for (const Ending& ending : ForkJob(3, 1).run(share_memory, 60)) {
    EXPECT_TRUE(ending.exited) << "signal " << ending.code;
    EXPECT_EQ(ending.code, 0);
  }
}

}  // namespace
}  // namespace ibcoll::multiprocess
