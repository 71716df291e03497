// SPDX-License-Identifier: BSD-3-Clause
// Blocking calls of one step that are made without a task, and what sends them the general way.
#include "tests/unit/engine_node.h"

namespace ibcoll {
namespace {

// Three ranks of one node.
class ShortCall : public EngineOfANodeTest {
 protected:
  static constexpr uint32_t kLooks = 3;

  void SetUp() override {
    EngineOfANodeTest::SetUp();
    node_teams_ = make_teams();
  }
  Team& on_node(int rank) { return *node_teams_[static_cast<size_t>(rank)]; }
  std::unique_ptr<Request> make(int rank, ibcoll_collective_t collective, uint64_t* send = nullptr,
                                uint64_t* recv = nullptr) {
    Args args;
    args.collective = collective;
    if (send) {
      args.bytes = sizeof *send, args.count = 1;
      args.send.base = reinterpret_cast<std::byte*>(send), args.recv.base = reinterpret_cast<std::byte*>(recv);
      args.reduction = Reduction(IBCOLL_SUM, IBCOLL_UINT64);
    }
    return std::make_unique<Request>(on_node(rank), args, Choice{find_algorithm(collective, "shm")}, IBCOLL_SCHEME_AUTO,
                                     1 + static_cast<uint32_t>(collective));
  }

  std::vector<std::unique_ptr<Team>> node_teams_;
};

TEST_F(ShortCall, TheLastRankIsDoneAtOnceAndTheOthersWait) {
  uint64_t send[kRanks] = {1, 20, 300}, recv[kRanks] = {};
  std::vector<std::unique_ptr<Request>> calls;
  for (int rank = 0; rank < kRanks; ++rank) {
    calls.push_back(make(rank, IBCOLL_ALLREDUCE, &send[rank], &recv[rank]));
    const Team::Short how = on_node(rank).run_short(*calls.back(), kLooks);
    EXPECT_EQ(how, rank == kRanks - 1 ? Team::Short::kDone : Team::Short::kHandedOver) << rank;
    EXPECT_EQ(calls.back()->in_flight(), rank != kRanks - 1);
  }
  progress();
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_FALSE(calls[static_cast<size_t>(rank)]->in_flight());
    EXPECT_EQ(recv[rank], 321u) << rank;
    EXPECT_EQ(on_node(rank).calls().completed(), 1u) << rank;
    EXPECT_TRUE(on_node(rank).failure().ok());
  }
}

TEST_F(ShortCall, AnotherCallIsInFlight) {
  const auto first = make(0, IBCOLL_BARRIER), second = make(0, IBCOLL_BARRIER);
  ASSERT_EQ(on_node(0).run_short(*first, kLooks), Team::Short::kHandedOver);
  EXPECT_EQ(on_node(0).run_short(*second, kLooks), Team::Short::kNo);
  EXPECT_EQ(on_node(0).calls().next(), 2u) << "nothing has happened";
  on_node(0).health().fail(error(IBCOLL_ERR_SYSTEM, "enough"));
  progress();
  EXPECT_FALSE(first->in_flight());
}

TEST_F(ShortCall, ARankInAnotherCallFailsIt) {
  uint64_t send = 1, recv = 0;
  const auto barrier = make(0, IBCOLL_BARRIER), odd = make(1, IBCOLL_ALLREDUCE, &send, &recv),
             last = make(2, IBCOLL_BARRIER);
  EXPECT_EQ(on_node(0).run_short(*barrier, kLooks), Team::Short::kHandedOver);
  EXPECT_EQ(on_node(1).run_short(*odd, kLooks), Team::Short::kHandedOver);
  EXPECT_EQ(on_node(2).run_short(*last, kLooks), Team::Short::kHandedOver);
  progress();
  wait_seconds(3);
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(on_node(rank).failure().code(), IBCOLL_ERR_MISMATCH) << rank;
}

TEST_F(ShortCall, ATeamThatHasFailedOrHasEarlyMessages) {
  const auto call = make(0, IBCOLL_BARRIER);
  const Note early{9, 8, 5, 1, 0, static_cast<uint16_t>(NoteKind::kEager), 0};
  on_node(0).on_note(1, early, text("from 5"));
  EXPECT_EQ(on_node(0).run_short(*call, kLooks), Team::Short::kNo);
  const auto other = make(1, IBCOLL_BARRIER);
  on_node(1).health().fail(error(IBCOLL_ERR_SYSTEM, "it broke"));
  EXPECT_EQ(on_node(1).run_short(*other, kLooks), Team::Short::kNo);
}

// What the call gives counts, not what the plan was made for.
TEST_F(ShortCall, OtherBuffers) {
  uint64_t send[kRanks] = {1, 2, 3}, recv[kRanks] = {}, again[kRanks] = {10, 20, 30}, sums[kRanks] = {};
  std::vector<std::unique_ptr<Request>> calls;
  for (int rank = 0; rank < kRanks; ++rank) calls.push_back(make(rank, IBCOLL_ALLREDUCE, &send[rank], &recv[rank]));
  for (int rank = 0; rank < kRanks; ++rank) (void)on_node(rank).run_short(*calls[static_cast<size_t>(rank)], kLooks);
  progress();
  for (int rank = 0; rank < kRanks; ++rank) {
    Request& call = *calls[static_cast<size_t>(rank)];
    call.move_to(reinterpret_cast<std::byte*>(&again[rank]), reinterpret_cast<std::byte*>(&sums[rank]));
    (void)on_node(rank).run_short(call, kLooks);
  }
  progress();
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(recv[rank], 6u);
    EXPECT_EQ(sums[rank], 60u);
  }
}

}  // namespace
}  // namespace ibcoll
