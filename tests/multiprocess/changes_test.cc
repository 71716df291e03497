// SPDX-License-Identifier: BSD-3-Clause
// The changes of a program after it has its context: its user, its directory, who may read its memory. Nothing of that
// may matter to collectives.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "tests/multiprocess/fork_job.h"
#include "tests/multiprocess/persistent_call.h"
#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {
namespace {

constexpr int kRanks = 4;
constexpr double kSeconds = 60;

// From now on the kernel lets no other process of this kind read this one's memory.
bool become_unreadable() {
  if (::geteuid() != 0) return ::prctl(PR_SET_DUMPABLE, 0) == 0;
  return ::setgid(65534) == 0 && ::setuid(65534) == 0;
}

// Root hides its memory by setuid(), other users by prctl().
enum class User { kRoot, kOther };

bool become(User user) {
  if (user == User::kRoot || ::geteuid() != 0) return true;
  return ::setgid(65534) == 0 && ::setuid(65534) == 0 && ::prctl(PR_SET_DUMPABLE, 1) == 0;
}

struct Change {
  const char* name;
  bool (*changes)(int rank, int round);  // whether the rank changes before this round
};

constexpr Change kChanges[] = {
    {"All", [](int, int round) { return round == 1; }},
    {"One", [](int rank, int round) { return round == 1 && rank == 2; }},
    {"OneByOne", [](int rank, int round) { return round == rank + 1; }},
};

struct Move {
  ibcoll_collective_t collective;
  uint64_t bytes;
  const char* algorithm;
};

constexpr Move kMoves[] = {{IBCOLL_BCAST, 300'000, "single_copy"},     {IBCOLL_ALLGATHER, 100'000, "single_copy"},
                           {IBCOLL_ALLGATHERV, 30'000, "single_copy"}, {IBCOLL_ALLTOALL, 100'000, "single_copy"},
                           {IBCOLL_ALLTOALL, 100'000, "direct"},       {IBCOLL_ALLTOALL, 100'000, nullptr},
                           {IBCOLL_ALLTOALLV, 100'000, "shm"},         {IBCOLL_ALLREDUCE, 400'000, "single_copy"},
                           {IBCOLL_ALLREDUCE, 400'000, nullptr},       {IBCOLL_BCAST, 3'000'000, nullptr}};

// "12 of 12": pairs of ranks.
std::string single_copy_pairs(ibcoll_context_t context) {
  std::string text(ibcoll_info_json(context, nullptr, 0) + 4096, '\0');
  ibcoll_info_json(context, text.data(), text.size());
  const std::string name = "\"single_copy_pairs\":\"";
  const size_t at = text.find(name);
  if (!expect(at != std::string::npos, "ibcoll_info_json names no pairs")) return "";
  const size_t begin = at + name.size();
  return text.substr(begin, text.find('"', begin) - begin);
}

int change_between_rounds(ForkedRank& self, const Change& change) {
  ibcoll_context_t context = nullptr;
  const ibcoll_context_params_t params{sizeof params, &self.bootstrap};
  if (!expect_ok(ibcoll_context_create(&params, &context), "ibcoll_context_create")) return 1;
  {
    const std::string pairs = single_copy_pairs(context);
    std::vector<std::unique_ptr<PersistentCall>> calls;
    for (const Move& move : kMoves)
      calls.push_back(std::make_unique<PersistentCall>(
          ibcoll_team_world(context),
          CallParams{.collective = move.collective, .bytes = move.bytes, .algorithm = move.algorithm}));
    for (int round = 0; round < kRanks + 2 && complaints() == 0; ++round) {
      if (change.changes(self.rank, round)) expect(become_unreadable(), "this process stays readable");
      for (auto& call : calls)
        if (!call->start(static_cast<uint64_t>(round)) || !call->wait(static_cast<uint64_t>(round))) break;
    }
    expect(single_copy_pairs(context) != pairs || pairs.starts_with("0 "), "{} may still copy", pairs);
    // A team that is made now selects by what is allowed now, alike on all ranks.
    const TeamOwner again = split(ibcoll_team_world(context), 0, self.rank);
    if (again.get()) {
      PersistentCall call(again.get(), {.collective = IBCOLL_ALLTOALL, .bytes = 200'000});
      if (call.start(0)) call.wait(0);
    }
  }
  expect_ok(ibcoll_context_destroy(context), "ibcoll_context_destroy");
  return complaints() > 0 ? 1 : 0;
}

// Connections to most ranks of the other node are made after the change.
int change_before_connecting(ForkedRank& self, bool changes) {
  ibcoll_context_t context = nullptr;
  const ibcoll_context_params_t params{sizeof params, &self.bootstrap};
  if (!expect_ok(ibcoll_context_create(&params, &context), "ibcoll_context_create")) return 1;
  if (changes) expect(become_unreadable(), "this process stays as it is");
  for (const uint64_t bytes : {1'000, 200'000}) {
    PersistentCall call(ibcoll_team_world(context),
                        {.collective = IBCOLL_ALLTOALL, .bytes = bytes, .algorithm = "direct"});
    if (call.start(0)) call.wait(0);
  }
  expect_ok(ibcoll_context_destroy(context), "ibcoll_context_destroy");
  return complaints() > 0 ? 1 : 0;
}

TEST(ChangedUser, OpensConnectionsToOtherNodes) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  if (!ForkJob::can_emulate_nodes()) GTEST_SKIP() << "no nodes can be emulated here";
  ::setenv("IBCOLL_LOG", "error", 1);
  ::setenv("IBCOLL_TIMEOUT", "30", 1);
  ::setenv("UCX_TLS", "tcp", 1);
  ::setenv("UCX_NET_DEVICES", "lo", 1);
  for (const unsigned ranks : {0b1111U, 0b0010U}) {  // all, or rank 1 alone
    const auto body = [ranks](ForkedRank& self) {
      return change_before_connecting(self, (ranks >> self.rank & 1) != 0);
    };
    const std::vector<Ending> endings = ForkJob(kRanks, 2).run(body, kSeconds);
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_TRUE(endings[static_cast<size_t>(rank)].exited) << "rank " << rank;
      EXPECT_EQ(endings[static_cast<size_t>(rank)].code, 0) << "rank " << rank;
    }
  }
}

class Unreadable : public testing::TestWithParam<std::tuple<Change, User>> {};

TEST_P(Unreadable, LargeBlocksGoByCopies) {
  ::setenv("IBCOLL_LOG", "error", 1);
  ::setenv("IBCOLL_TIMEOUT", "30", 1);
  const auto& [change, user] = GetParam();
  if (user == User::kRoot && ::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const auto body = [change = change, user = user](ForkedRank& self) {
    expect(become(user), "the rank cannot become another user");
    return change_between_rounds(self, change);
  };
  const std::vector<Ending> endings = ForkJob(kRanks, 1).run(body, kSeconds);
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_FALSE(endings[static_cast<size_t>(rank)].overdue) << "rank " << rank << " hangs";
    EXPECT_TRUE(endings[static_cast<size_t>(rank)].exited) << "rank " << rank;
    EXPECT_EQ(endings[static_cast<size_t>(rank)].code, 0) << "rank " << rank;
  }
}

std::string name_of(const testing::TestParamInfo<std::tuple<Change, User>>& info) {
  return fmt::format("{}As{}", std::get<0>(info.param).name, std::get<1>(info.param) == User::kRoot ? "Root" : "User");
}

INSTANTIATE_TEST_SUITE_P(Ranks, Unreadable,
                         testing::Combine(testing::ValuesIn(kChanges), testing::Values(User::kRoot, User::kOther)),
                         name_of);

// Another user may not have the memory of the node: all ranks refuse that at once, and name both users.
TEST(TwoUsers, OfOneNodeAreRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  ForkJob job(3, 1);
  const auto endings = job.run(
      [](ForkedRank& self) {
        if (self.rank == 2 && ::setuid(65534) != 0) return 2;
        const ibcoll_context_params_t params{sizeof params, &self.bootstrap};
        ibcoll_context_t context = nullptr;
        const double begin = seconds_now();
        expect_error(ibcoll_context_create(&params, &context), IBCOLL_ERR_CONFIG,
                     "rank 0 runs as the user with the number 0, and rank 2 of the same node as the user 65534",
                     "ibcoll_context_create");
        expect(seconds_now() - begin < 20, "only after {} s", seconds_now() - begin);
        return complaints() == 0 ? 0 : 1;
      },
      kSeconds);
  for (const Ending& ending : endings) EXPECT_TRUE(ending.exited && ending.code == 0);
}

}  // namespace
}  // namespace ibcoll::multiprocess
