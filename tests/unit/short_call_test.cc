// SPDX-License-Identifier: BSD-3-Clause
// Blocking calls of one step that are made without a task, and what sends them the general way.
#include <array>
#include <utility>

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
                                uint64_t* recv = nullptr, const char* algorithm = "shm") {
    Args args;
    args.collective = collective;
    if (send) {
      args.bytes = sizeof *send, args.count = 1;
      args.send.base = reinterpret_cast<std::byte*>(send), args.recv.base = reinterpret_cast<std::byte*>(recv);
      args.reduction = Reduction(IBCOLL_SUM, IBCOLL_UINT64);
    }
    return std::make_unique<Request>(on_node(rank), args, Choice{find_algorithm(collective, algorithm)},
                                     IBCOLL_SCHEME_AUTO, 1 + static_cast<uint32_t>(collective));
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

// What a rank publishes is made of what the next lower one has published.
TEST_F(ShortCall, ARankThatPublishesLast) {
  uint64_t send[kRanks] = {1, 20, 300}, recv[kRanks] = {};
  for (const bool upwards : {true, false}) {
    std::vector<std::unique_ptr<Request>> calls(kRanks);
    for (int i = 0; i < kRanks; ++i) {
      const int rank = upwards ? i : kRanks - 1 - i;
      auto& call = calls[static_cast<size_t>(rank)];
      call = make(rank, IBCOLL_SCAN, &send[rank], &recv[rank], "shm_chain");
      const Team::Short how = on_node(rank).run_short(*call, kLooks);
      EXPECT_EQ(how, upwards || rank == 0 ? Team::Short::kDone : Team::Short::kHandedOver) << rank;
    }
    progress();
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_FALSE(calls[static_cast<size_t>(rank)]->in_flight()) << rank;
      EXPECT_EQ(std::exchange(recv[rank], 0), rank == 0 ? 1u : rank == 1 ? 21u : 321u);
    }
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

// All ranks know that no byte moves: none waits, whatever the others do.
TEST_F(ShortCall, NothingToDo) {
  uint64_t recv = 7;
  const auto call = make(1, IBCOLL_BCAST, nullptr, &recv);
  EXPECT_EQ(on_node(1).run_short(*call, 0), Team::Short::kDone);
  EXPECT_TRUE(call->start().ok());
  EXPECT_FALSE(call->in_flight());
  EXPECT_TRUE(call->done());
  EXPECT_EQ(on_node(1).calls().completed(), 2u);
  EXPECT_EQ(recv, 7u);
}

TEST_F(ShortCall, StartedCallsOfOneStepAreDoneAtOnceWhereTheOthersAreThere) {
  uint64_t send[kRanks] = {1, 20, 300}, recv[kRanks] = {};
  std::vector<std::unique_ptr<Request>> calls;
  for (int run = 0; run < 3; ++run)
    for (int rank = 0; rank < kRanks; ++rank) {
      if (run == 0) calls.push_back(make(rank, IBCOLL_ALLREDUCE, &send[rank], &recv[rank]));
      Request& call = *calls[static_cast<size_t>(rank)];
      ASSERT_TRUE(call.start().ok());
      EXPECT_EQ(call.in_flight(), rank != kRanks - 1);
      EXPECT_EQ(call.done(), rank == kRanks - 1);
      if (rank < kRanks - 1) continue;
      progress();
      for (int i = 0; i < kRanks; ++i) {
        EXPECT_TRUE(calls[static_cast<size_t>(i)]->done());
        EXPECT_EQ(std::exchange(recv[i], 0), 321u);
      }
    }
}

// Rank 2 has a block that rank 0 has to read: rank 1, with short blocks only, goes on to the step that ends that, too,
// also where it begins last.
TEST_F(ShortCall, AnAlltoallvWithMoreToDoGoesOn) {
  constexpr uint64_t kShort = 8, kLong = 1000;
  std::vector<std::byte> send[kRanks], recv[kRanks];
  std::vector<uint64_t> sizes[kRanks], from[kRanks];
  std::unique_ptr<Request> calls[kRanks];
  const std::vector<uint64_t> displacements = {0, kLong, 2 * kLong};
  int reads = 0;
  node_.while_read = [&] { ++reads; };
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto at = static_cast<size_t>(rank);
    send[at].assign(3 * kLong, static_cast<std::byte>(rank + 1));
    recv[at].resize(3 * kLong);
    sizes[at] = {rank == 2 ? kLong : kShort, kShort, kShort};
    from[at] = {kShort, kShort, rank == 0 ? kLong : kShort};
    Args args;
    args.collective = IBCOLL_ALLTOALLV;
    args.send = {send[at].data(), 0, sizes[at].data(), displacements.data()};
    args.recv = {recv[at].data(), 0, from[at].data(), displacements.data()};
    calls[at] = std::make_unique<Request>(on_node(rank), args, Choice{find_algorithm(IBCOLL_ALLTOALLV, "shm")},
                                          IBCOLL_SCHEME_AUTO, 1);
    EXPECT_EQ(static_cast<bool>(calls[at]->one_step()), rank != 2);
  }
  for (const auto& order : {std::array{0, 1, 2}, std::array{2, 0, 1}}) {
    for (const int rank : order) ASSERT_TRUE(calls[rank]->start().ok());
    progress();
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto at = static_cast<size_t>(rank);
      EXPECT_TRUE(calls[at]->done()) << rank << ": " << on_node(rank).failure().text();
      EXPECT_EQ(recv[at][0], std::byte{1});
      EXPECT_EQ(recv[at][kLong], std::byte{2});
      recv[at].assign(3 * kLong, std::byte{0});
    }
  }
  EXPECT_EQ(reads, 2);
}

}  // namespace
}  // namespace ibcoll
