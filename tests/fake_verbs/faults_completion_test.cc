// SPDX-License-Identifier: BSD-3-Clause
// Work requests that complete with an error.
#include <set>

#include "tests/fake_verbs/faulty.h"

namespace ibcoll::fake_verbs {
namespace {

bool has_immediate(const ibv_send_wr& request) { return request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM; }

// The n-th Write that rank 0 executes has this outcome.
void fail_write(int n, Outcome outcome) {
  rank(0).faults.execute = [n, outcome](const ibv_send_wr&) mutable { return --n == 0 ? outcome : Outcome(); };
}

// The peer had no time: this is the only status after which a new connection is tried. It does not say whether the
// Write has landed, so what is sent again must not arrive twice. The new connection replaces the old one.
TEST_F(FaultTest, AfterTheLastRetryAMessageComesOnce) {
  for (const bool lands : {false, true})
    for (int n = 1; n <= 8; ++n) {
      SCOPED_TRACE("write " + std::to_string(n));
      begin(conformance::test_seed() + static_cast<uint64_t>(n));
      auto world = make_connected(2, {"IBCOLL_VERBS_QUEUE_PAIRS=1"});
      ASSERT_TRUE(world);
      fail_write(n, {IBV_WC_RETRY_EXC_ERR, lands});
      ASSERT_NO_FATAL_FAILURE(expect_traffic(*world, 0, 1, 10));
      EXPECT_EQ(world->counter(0, "reconnections"), 1);
      EXPECT_EQ(world->counter(0, "failed_peers"), 0);
    }
}

// What has landed and was not handed out yet is not sent again either.
TEST_F(FaultTest, MessagesThatWaitToBeHandedOutComeOnce) {
  constexpr uint32_t kMessages = 20;
  auto world = make_connected(2, {"IBCOLL_VERBS_NOTIFY=imm"});
  ASSERT_TRUE(world);
  fail_write(kMessages, {IBV_WC_RETRY_EXC_ERR, true});
  world->put_to_sleep(1);
  for (uint32_t i = 1; i <= kMessages; ++i) ASSERT_TRUE(world->send(0, 1, numbered(i), {}));
  drain(*world);
  uint32_t next = 1;
  for (int i = 0; i < 3'000; ++i) {
    world->pump();
    Event event;
    if (i % 100 != 0 || world->at(1).poll({&event, 1}) == 0) continue;
    EXPECT_EQ(event.kind, Event::Kind::kMessage);
    EXPECT_EQ(event.note.op, next++);
  }
  EXPECT_EQ(next, kMessages + 1);
  world->wake_up(1);
  ASSERT_NO_FATAL_FAILURE(expect_traffic(*world, 0, 1, 3));
  EXPECT_EQ(world->counter(0, "reconnections"), 1);
}

// All others say that something is wrong with this rank's requests or its device, or perhaps with the peer's.
TEST_F(FaultTest, AnyOtherErrorLosesThePeerWithTheDevicesWords) {
  const std::set of_this_rank = {IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_QP_OP_ERR, IBV_WC_LOC_PROT_ERR, IBV_WC_MW_BIND_ERR,
                                 IBV_WC_FATAL_ERR};
  for (const ibv_wc_status status :
       {IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_QP_OP_ERR, IBV_WC_LOC_PROT_ERR, IBV_WC_MW_BIND_ERR, IBV_WC_BAD_RESP_ERR,
        IBV_WC_LOC_ACCESS_ERR, IBV_WC_REM_ABORT_ERR, IBV_WC_FATAL_ERR, IBV_WC_RESP_TIMEOUT_ERR, IBV_WC_GENERAL_ERR,
        IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_OP_ERR}) {
    SCOPED_TRACE(ibv_wc_status_str(status));
    begin(conformance::test_seed());
    auto world = make_connected(2);
    ASSERT_TRUE(world);
    rank(0).faults.execute = [=](const ibv_send_wr&) { return Outcome{status}; };
    expect_loss(*world, 0, std::string(ibv_wc_status_str(status)) + " (vendor error 81)");
    EXPECT_EQ(lack(*world, 0, 1), of_this_rank.contains(status) ? IBCOLL_ERR_TRANSPORT : IBCOLL_OK);
  }
}

// By the number of the work request: the data of one put, its note, a message.
TEST_F(FaultTest, ALostPeerGivesTheSourcesOfPutsBack) {
  auto world = make_connected(2);
  ASSERT_TRUE(world);
  std::vector<std::byte> memory(100'000), source(100'000);
  const RemoteRegion region = world->at(1).expose(0, memory);
  ASSERT_NE(region.key, 0u);
  uint64_t failed = 0;
  rank(0).faults.execute = [&, data = 0](const ibv_send_wr& request) mutable {
    if (has_immediate(request) || ++data != 3) return Outcome();
    failed = request.wr_id;
    return Outcome{IBV_WC_GENERAL_ERR};
  };
  uint64_t accepted = 0;
  while (accepted < 5 && world->at(0).put(1, region, source, numbered(1), accepted) == PutResult::kPending) ++accepted;
  ASSERT_EQ(accepted, 5u);
  ASSERT_TRUE(world->pump_until([&] { return !lost(*world, 0, 1).empty(); }));
  EXPECT_NE(failed, 0u);
  for (uint64_t token = 0; token < accepted; ++token) EXPECT_TRUE(world->got_sent(0, token)) << "put " << token;
  EXPECT_EQ(world->messages(1, 0), 2u) << "the first two were through";
  EXPECT_EQ(world->at(0).put(1, region, source, numbered(1), 9), PutResult::kBusy);
  world->conceal(1, 0, region);
}

TEST_F(FaultTest, ReceiverNotReadyEndsInAnError) {
  auto world = make_connected(2, {"IBCOLL_VERBS_NOTIFY=imm"});
  ASSERT_TRUE(world);
  rank(0).faults.execute = [](const ibv_send_wr&) { return Outcome{.no_receive = true}; };
  expect_loss(*world, 0, "it had no receive posted (receiver-not-ready retry counter exceeded): a fault of ibcoll");
}

TEST_F(FaultTest, ReceiverNotReadyForAWhileIsNoError) {
  auto world = make_connected(2, {"IBCOLL_VERBS_NOTIFY=imm"});
  ASSERT_TRUE(world);
  rank(0).faults.execute = [n = 0](const ibv_send_wr&) mutable { return Outcome{.no_receive = ++n % 6 != 0}; };
  ASSERT_NO_FATAL_FAILURE(expect_traffic(*world, 0, 1));
  EXPECT_EQ(world->counter(0, "reconnections"), 0);
}

// A flushed receive alone says that the peer's request was at fault.
TEST_F(FaultTest, NothingIsWrittenAfterThePeerIsLost) {
  script().landing = Landing::kLastFirst;
  auto world = make_connected(2);
  ASSERT_TRUE(world);
  std::vector<std::byte> memory(1 << 20), source(1 << 20);
  fill(source, 1);
  const RemoteRegion region = world->at(1).expose(0, memory);
  ASSERT_NE(region.key, 0u);
  for (uint64_t token = 0; token < 8; ++token)
    ASSERT_EQ(world->at(0).put(1, region, source, numbered(1), token), PutResult::kPending);
  rank(1).faults.execute = [](const ibv_send_wr&) { return Outcome{IBV_WC_GENERAL_ERR}; };
  ASSERT_TRUE(world->at(1).send(0, numbered(1), {}));
  ASSERT_TRUE(world->pump_until([&] { return !lost(*world, 1, 0).empty(); }));
  world->conceal(1, 0, region);
  std::fill(memory.begin(), memory.end(), std::byte{7});
  for (int i = 0; i < 3'000; ++i) world->pump();
  EXPECT_TRUE(std::all_of(memory.begin(), memory.end(), [](std::byte byte) { return byte == std::byte{7}; }));
}

}  // namespace
}  // namespace ibcoll::fake_verbs
