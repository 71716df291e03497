// SPDX-License-Identifier: BSD-3-Clause
// The cost of messages, puts and collectives in work requests, completions and calls of the device. An algorithm's page
// says how many messages it sends; here they are counted where they leave.
#include "tests/fake_verbs/faulty.h"
#include "tests/fake_verbs/job.h"

namespace ibcoll::fake_verbs {
namespace {

// The counts of ranks 0 and 1, from here on.
class Difference {
 public:
  Counts sender() const { return rank(0).counts - before_[0]; }
  Counts receiver() const { return rank(1).counts - before_[1]; }

 private:
  Counts before_[2] = {rank(0).counts, rank(1).counts};
};

class CountTest : public FaultTest {
 protected:
  void open(std::vector<const char*> settings) {
    world_ = make_connected(2, std::move(settings));
    ASSERT_TRUE(world_);
    drain(*world_);
  }
  // One put to an exposure that is there already; counts until all is quiet.
  void put(size_t bytes) {
    memory_.resize(bytes), source_.resize(bytes);
    region_ = world_->at(1).expose(0, memory_);
    ASSERT_NE(region_.key, 0u);
    drain(*world_);
    counted_ = Difference();
    ASSERT_TRUE(world_->put(0, 1, region_, source_, numbered(1)));
    ASSERT_TRUE(world_->pump_until([&] { return world_->messages(1, 0) == 1; }));
    drain(*world_);
  }
  void TearDown() override {
    if (world_ && region_.key != 0) world_->conceal(1, 0, region_);
  }

  std::unique_ptr<World> world_;
  std::vector<std::byte> memory_, source_;
  RemoteRegion region_;
  Difference counted_;
};

TEST_F(CountTest, AShortPutIsOneRequestAndOneCompletion) {
  ASSERT_NO_FATAL_FAILURE(open({"IBCOLL_VERBS_NOTIFY=imm"}));
  ASSERT_NO_FATAL_FAILURE(put(8));
  EXPECT_EQ(counted_.sender().requests[IBV_WR_RDMA_WRITE_WITH_IMM], 1u);
  EXPECT_EQ(counted_.sender().all(), 1u);
  EXPECT_EQ(counted_.sender().posts, 1u);
  EXPECT_EQ(counted_.sender().inlined, 1u);
  EXPECT_EQ(counted_.sender().signaled, 0u);
  EXPECT_EQ(counted_.receiver().received, 1u);
  EXPECT_EQ(counted_.receiver().all(), 0u);
}

TEST_F(CountTest, InMemoryItTakesNoCompletion) {
  ASSERT_NO_FATAL_FAILURE(open({"IBCOLL_VERBS_NOTIFY=memory"}));
  ASSERT_NO_FATAL_FAILURE(put(8));
  EXPECT_EQ(counted_.sender().requests[IBV_WR_RDMA_WRITE], 1u);
  EXPECT_EQ(counted_.sender().all(), 1u);
  EXPECT_EQ(counted_.receiver().received, 0u);
  EXPECT_EQ(counted_.receiver().receives, 0u);
}

TEST_F(CountTest, ALongPutIsItsDataAndItsNoteInOneCall) {
  ASSERT_NO_FATAL_FAILURE(open({}));
  ASSERT_NO_FATAL_FAILURE(put(100'000));
  EXPECT_EQ(counted_.sender().requests[IBV_WR_RDMA_WRITE], 1u);
  EXPECT_EQ(counted_.sender().requests[IBV_WR_RDMA_WRITE_WITH_IMM], 1u);
  EXPECT_EQ(counted_.sender().all(), 2u);
  EXPECT_EQ(counted_.sender().posts, 1u);
  EXPECT_EQ(counted_.sender().signaled, 1u);
  EXPECT_EQ(counted_.sender().sent, 1u);
  EXPECT_EQ(counted_.receiver().received, 1u);
}

// 4 MB each.
TEST_F(CountTest, APutOfTenMegabytesIsThreeWritesAndANote) {
  ASSERT_NO_FATAL_FAILURE(open({}));
  ASSERT_NO_FATAL_FAILURE(put(10 << 20));
  EXPECT_EQ(counted_.sender().all(), 4u);
  EXPECT_EQ(counted_.sender().posts, 1u);
  EXPECT_EQ(counted_.sender().signaled, 3u) << "the full Writes and the note";
}

TEST_F(CountTest, AWindowIsABindAndAnInvalidation) {
  ASSERT_NO_FATAL_FAILURE(open({"IBCOLL_VERBS_WINDOWS=on"}));
  const Difference all;
  ASSERT_NO_FATAL_FAILURE(put(100'000));
  world_->conceal(1, 0, region_);
  region_ = {};
  EXPECT_EQ(all.receiver().requests[IBV_WR_BIND_MW], 1u);
  EXPECT_EQ(all.receiver().requests[IBV_WR_LOCAL_INV], 1u);
  EXPECT_EQ(all.receiver().all(), 2u);
}

// Every 16th request asks for one, and every 16th message is answered with credit.
TEST_F(CountTest, CompletionsAndCreditsComePeriodically) {
  ASSERT_NO_FATAL_FAILURE(open({"IBCOLL_VERBS_NOTIFY=imm"}));
  constexpr uint32_t kMessages = 320;
  counted_ = Difference();
  for (uint32_t i = 0; i < kMessages; ++i) ASSERT_TRUE(world_->send(0, 1, numbered(i), {}));
  ASSERT_TRUE(world_->pump_until([&] { return world_->messages(1, 0) == kMessages; }));
  drain(*world_);
  EXPECT_EQ(counted_.sender().all(), kMessages);
  EXPECT_EQ(counted_.sender().signaled, kMessages / 16);
  EXPECT_EQ(counted_.receiver().received, kMessages);
  EXPECT_LE(counted_.receiver().all(), kMessages / 16);
  EXPECT_GE(counted_.receiver().all(), kMessages / 32);
}

// Credit goes along with answers.
TEST_F(CountTest, AnAnswerIsAllThatAMessageCosts) {
  ASSERT_NO_FATAL_FAILURE(open({"IBCOLL_VERBS_NOTIFY=imm"}));
  constexpr uint32_t kMessages = 160;
  counted_ = Difference();
  for (uint32_t i = 0; i < kMessages; ++i)
    for (const int from : {0, 1}) {
      ASSERT_TRUE(world_->send(from, 1 - from, numbered(i), {}));
      ASSERT_TRUE(world_->pump_until([&] { return world_->messages(1 - from, from) == i + 1; }));
    }
  drain(*world_);
  EXPECT_EQ(counted_.sender().all(), kMessages);
  EXPECT_EQ(counted_.receiver().all(), kMessages);
}

// In the second call, which has other buffers, each rank pins what it sends, and no scratch memory again.
TEST(Registrations, OfScratchMemoryAreKept) {
  EngineJob job(2, conformance::test_seed());
  CallParams params;
  params.collective = IBCOLL_REDUCE_SCATTER_BLOCK;
  params.p = 2;
  params.type = IBCOLL_UINT32;
  params.op = IBCOLL_SUM;
  params.count = (1 << 20) / sizeof(uint32_t);
  ASSERT_EQ(job.run(params, "recursive_halving"), "");
  std::array<int, 2> pinned{};
  for (int i = 0; i < 2; ++i)
    rank(i).faults.reg_mr = [&pinned, i](size_t bytes, int) {
      pinned[static_cast<size_t>(i)] += bytes >= 1 << 20;
      return 0;
    };
  ASSERT_EQ(job.run(params, "recursive_halving"), "");
  for (int i = 0; i < 2; ++i) rank(i).faults.reg_mr = nullptr;
  EXPECT_LE(pinned[0], 1);
  EXPECT_LE(pinned[1], 1);
}

struct Call {
  const char* name;
  ibcoll_collective_t collective;
  const char* algorithm;
  uint64_t bytes;     // of a block
  uint64_t writes;    // work requests of all 6 ranks, beside credits
  uint64_t receives;  // completions of immediates
};
std::ostream& operator<<(std::ostream& out, const Call& call) { return out << call.name; }

constexpr int kRanks = 6;
constexpr uint64_t kPairs = kRanks * (kRanks - 1);
constexpr Call kCalls[] = {
    {"alltoall_short", IBCOLL_ALLTOALL, "pap_direct", 8, kPairs, kPairs},
    {"alltoall_long", IBCOLL_ALLTOALL, "pap_direct", 100'000, 3 * kPairs, 2 * kPairs},  // announcement, data, note
    {"allgather_ring", IBCOLL_ALLGATHER, "ring", 8, kPairs, kPairs},
    {"allgather_bruck", IBCOLL_ALLGATHER, "bruck", 8, 3 * kRanks, 3 * kRanks},
    {"barrier_dissemination", IBCOLL_BARRIER, "dissemination", 0, 3 * kRanks, 3 * kRanks},
    {"bcast_binomial", IBCOLL_BCAST, "binomial", 8, kRanks - 1, kRanks - 1},
    {"bcast_binomial_long", IBCOLL_BCAST, "binomial", 100'000, 3 * (kRanks - 1), 2 * (kRanks - 1)},
};

class CollectiveCounts : public testing::TestWithParam<Call> {};

// The second call: by then ranks are connected.
TEST_P(CollectiveCounts, AreThoseOfTheAlgorithm) {
  const Call& call = GetParam();
  script().landing = Landing::kShuffled;
  script().binds_at_once = false;
  EngineJob job(kRanks, conformance::test_seed(), {"IBCOLL_VERBS_WINDOWS=off"});
  CallParams params;
  params.collective = call.collective;
  params.p = kRanks;
  params.bytes = call.bytes;
  params.scheme = call.bytes > 8192 ? IBCOLL_SCHEME_ZERO_COPY : IBCOLL_SCHEME_AUTO;
  ASSERT_EQ(job.run(params, call.algorithm), "");
  job.drain();
  const std::vector<Counts> before = job.counts();
  ASSERT_EQ(job.run(params, call.algorithm), "");
  job.drain();
  Counts all;
  uint64_t credits = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    const Counts one = job.counts()[i] - before[i];
    for (size_t opcode = 0; opcode < all.requests.size(); ++opcode) all.requests[opcode] += one.requests[opcode];
    all.received += one.received;
  }
  credits = all.all() - std::min(all.all(), call.writes);
  EXPECT_GE(all.all(), call.writes);
  EXPECT_LE(credits, kPairs) << "beside " << call.writes << " requests";
  EXPECT_EQ(all.received, call.receives);
}

INSTANTIATE_TEST_SUITE_P(Calls, CollectiveCounts, testing::ValuesIn(kCalls),
                         [](const auto& info) { return info.param.name; });

// Right data, whatever the order in which bytes land, and with windows that a device binds late.
TEST(Collectives, AreRightOnADeviceThatPromisesLittle) {
  for (const Landing landing : {Landing::kShuffled, Landing::kLastFirst, Landing::kInOrder})
    for (const char* windows : {"IBCOLL_VERBS_WINDOWS=off", "IBCOLL_VERBS_WINDOWS=on"}) {
      begin(conformance::test_seed());
      script().landing = landing;
      script().binds_at_once = false;
      script().lost_permille = 100;
      EngineJob job(5, conformance::test_seed(), {windows});
      for (const uint64_t bytes : {8, 5'000, 70'000})
        for (const auto& [collective, algorithm] :
             {std::pair{IBCOLL_ALLTOALL, "pap_direct"}, {IBCOLL_ALLTOALL, "pairwise"}, {IBCOLL_ALLGATHER, "ring"}}) {
          CallParams params;
          params.collective = collective;
          params.p = 5;
          params.bytes = bytes;
          EXPECT_EQ(job.run(params, algorithm, 3), "") << algorithm << ", " << bytes << " bytes, " << windows;
        }
    }
}

}  // namespace
}  // namespace ibcoll::fake_verbs
