// SPDX-License-Identifier: BSD-3-Clause
// The messages by which ranks join a job. The other ranks answer what a test wants. Jobs of several:
// tests/multiprocess.
#include "runtime/context/join.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "runtime/context/join_messages.h"

namespace ibcoll {
namespace {

// The other ranks send what this one sends, changed by `others`.
class EchoBootstrap : public Bootstrap {
 public:
  EchoBootstrap(int rank, int size) : rank_(rank), size_(size) {}
  std::string name() const override { return "echo"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Status allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    ++rounds;
    for (int i = 0; i < size_; ++i) {
      std::byte* const slot = all.data() + static_cast<size_t>(i) * mine.size();
      std::memcpy(slot, mine.data(), mine.size());
      if (i != rank_ && others) others(i, slot);
    }
    return result;
  }

  std::function<void(int rank, std::byte* message)> others;
  Status result;
  int rounds = 0;

 private:
  int rank_;
  int size_;
};

// That rank answers with an error.
template <typename Message>
std::function<void(int, std::byte*)> failing(int failing_rank) {
  return [failing_rank](int rank, std::byte* slot) {
    auto& message = *reinterpret_cast<Message*>(slot);
    message.answer = rank == failing_rank ? answer_of(error(IBCOLL_ERR_SYSTEM, "it broke")) : Answer();
  };
}

TEST(Join, AStepEndsWithTheMessagesOfAllRanks) {
  EchoBootstrap bootstrap(1, 3);
  bootstrap.others = [](int rank, std::byte* slot) {
    reinterpret_cast<OpenNetworkMessage*>(slot)->address_bytes += static_cast<uint32_t>(rank);
  };
  OpenNetworkMessage mine;
  mine.address_bytes = 10;
  const auto all = end_step(bootstrap, Status(), mine);
  ASSERT_TRUE(all.ok()) << all.status().text();
  EXPECT_EQ(all.value()[0].address_bytes, 10u);
  EXPECT_EQ(all.value()[1].address_bytes, 10u);
  EXPECT_EQ(all.value()[2].address_bytes, 12u);
  EXPECT_EQ(bootstrap.rounds, 1);
}

TEST(Join, AStepEndsWithTheErrorOfTheFirstRankThatHasOne) {
  const Status mine = error(IBCOLL_ERR_NO_MEMORY, "no memory here");
  EchoBootstrap first(0, 3), last(2, 3), well(1, 3);
  first.others = last.others = failing<ProbeMessage>(1);
  well.others = failing<ProbeMessage>(2);
  EXPECT_EQ(end_step(first, mine, ProbeMessage()).status().text(), "no memory here");
  for (const Status& status :
       {end_step(last, mine, ProbeMessage()).status(), agree(first, Status()), agree(last, Status())}) {
    EXPECT_EQ(status.code(), IBCOLL_ERR_SYSTEM);
    EXPECT_EQ(status.text(), "rank 1 could not join the job: it broke");
  }
  EXPECT_EQ(end_step(well, Status(), ProbeMessage()).status().text(), "rank 2 could not join the job: it broke");
  EXPECT_EQ(agree(last, mine).text(), "no memory here");
}

TEST(Join, ABootstrapThatFailsEndsAStep) {
  EchoBootstrap bootstrap(0, 2);
  bootstrap.result = error(IBCOLL_ERR_TIMEOUT, "nobody came");
  EXPECT_EQ(end_step(bootstrap, Status(), TimeMessage()).status().text(), "nobody came");
  EXPECT_EQ(agree(bootstrap, Status()).text(), "nobody came");
  EXPECT_EQ(agree(bootstrap, error(IBCOLL_ERR_CONFIG, "a wrong setting")).text(), "a wrong setting");
  EXPECT_EQ(join_job(bootstrap, Config()).status().text(), "nobody came");
}

TEST(Join, ATextThatIsTooLongIsCut) {
  EchoBootstrap bootstrap(0, 2);
  bootstrap.others = [](int, std::byte* slot) {
    reinterpret_cast<ProbeMessage*>(slot)->answer = answer_of(error(IBCOLL_ERR_SYSTEM, "{:*>1000}", ""));
  };
  const std::string text = agree(bootstrap, Status()).text();
  EXPECT_EQ(text.substr(text.size() - 5), "**...");
  EXPECT_EQ(text.size(), std::string("rank 1 could not join the job: ").size() + sizeof Answer::text - 1);
}

// A rank that fails before it knows the others tells them in its first message.
TEST(Join, ARankThatCannotIntroduceItselfTellsTheOthers) {
  EchoBootstrap bootstrap(0, 3);
  bootstrap.others = failing<MeetMessage>(2);
  const Status status = join_job(bootstrap, Config()).status();
  EXPECT_EQ(status.text(), "rank 2 could not join the job: it broke");
  EXPECT_EQ(bootstrap.rounds, 1);
}

// What else a rank of another version sends cannot be read.
TEST(Join, VersionsAreComparedBeforeAllElse) {
  EchoBootstrap bootstrap(0, 3);
  bootstrap.others = [](int rank, std::byte* slot) {
    auto& message = *reinterpret_cast<MeetMessage*>(slot);
    message.answer.code = rank;
    message.settings[0] += static_cast<uint64_t>(rank);
    if (rank == 2) message.version = uint64_t{7} << 32 | 8 << 16 | 9;
  };
  const Status status = join_job(bootstrap, Config()).status();
  EXPECT_EQ(status.code(), IBCOLL_ERR_BOOTSTRAP);
  EXPECT_NE(status.text().find("rank 2 has 7.8.9; install one version on all hosts"), std::string::npos)
      << status.text();
}

TEST(Join, ASettingThatDiffersIsNamed) {
  size_t shared = 0;
  while (Config::settings()[shared].ranks != Setting::Ranks::kAgree) ++shared;
  EchoBootstrap bootstrap(2, 3);
  bootstrap.others = [shared](int rank, std::byte* slot) {
    if (rank == 1) ++reinterpret_cast<MeetMessage*>(slot)->settings[shared];
  };
  const Status status = join_job(bootstrap, Config()).status();
  EXPECT_EQ(status.code(), IBCOLL_ERR_CONFIG);
  const std::string name = Config::settings()[shared].name;
  EXPECT_EQ(status.text().find(name + " differs between rank 0 and rank 1; it must be the same on all ranks"), 0u)
      << status.text();
  EXPECT_EQ(bootstrap.rounds, 1);
}

// Other users see the names of sockets; the number of the job is the key to the segment.
TEST(Join, TheNameOfTheSocketDoesNotTellTheNumberOfTheJob) {
  EchoBootstrap bootstrap(0, 2);
  uint64_t job = 0;
  std::string sockets;
  bootstrap.others = [&](int, std::byte* slot) {
    if (bootstrap.rounds == 1) {
      auto& last = *reinterpret_cast<MeetMessage*>(slot);
      job = last.nonce;
      last.nonce = ~job;
      return;
    }
    std::ifstream file("/proc/net/unix");  // the leader has offered the segment by now
    sockets.assign(std::istreambuf_iterator<char>(file), {});
    bootstrap.result = error(IBCOLL_ERR_TIMEOUT, "that is enough");
  };
  EXPECT_EQ(join_job(bootstrap, Config()).status().text(), "that is enough");
  EXPECT_NE(sockets.find(fmt::format("@ibcoll-{:016x}-0", ~job)), std::string::npos) << sockets;
  EXPECT_EQ(sockets.find(fmt::format("{:016x}", job)), std::string::npos) << sockets;
}

// Six messages, no addresses.
TEST(Join, AJobOfOneRankJoins) {
  EchoBootstrap bootstrap(0, 1);
  Result<JoinedJob> job = join_job(bootstrap, Config());
  ASSERT_TRUE(job.ok()) << job.status().text();
  EXPECT_EQ(bootstrap.rounds, 6);
  EXPECT_EQ(job->nodes, std::vector<int>{0});
  EXPECT_EQ(job->shm, nullptr);
  EXPECT_EQ(job->net, nullptr);
  EXPECT_EQ(job->net_reason, "not used: all ranks are on one node");
  EXPECT_GT(job->cache_bytes, 0);
}

}  // namespace
}  // namespace ibcoll
