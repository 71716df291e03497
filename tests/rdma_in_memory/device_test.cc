// SPDX-License-Identifier: BSD-3-Clause
// What libibverbs promises of queue pairs, regions and completions.
#include <fcntl.h>
#include <poll.h>

#include <cerrno>
#include <numeric>

#include "tests/rdma_in_memory/pair.h"

namespace ibcoll::rdma_in_memory_tests {
namespace {

class DeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(pair.complete()) << "run this by ibcoll_run --rdma-in-memory -n 1";
    std::iota(pair.source.begin(), pair.source.end(), uint8_t{1});
  }
  bool arrived(size_t bytes) const {
    return std::equal(pair.source.begin(), pair.source.begin() + static_cast<ptrdiff_t>(bytes), pair.target.begin());
  }

  Pair pair;
};

TEST_F(DeviceTest, WritesAndReads) {
  ASSERT_EQ(pair.post(IBV_WR_RDMA_WRITE, kBytes, pair.to->rkey), 0);
  EXPECT_EQ(pair.next_status(), IBV_WC_SUCCESS);
  EXPECT_TRUE(arrived(kBytes));
  std::fill(pair.source.begin(), pair.source.end(), uint8_t{0});
  ASSERT_EQ(pair.post(IBV_WR_RDMA_READ, 100, pair.to->rkey), 0);
  const std::optional<ibv_wc> done = pair.next();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->opcode, IBV_WC_RDMA_READ);
  EXPECT_TRUE(arrived(100));
}

TEST_F(DeviceTest, ImmediatesAndSendsTakeReceives) {
  ASSERT_EQ(pair.post_receive(kBytes), 0);
  ASSERT_EQ(pair.post_receive(8), 0);
  ASSERT_EQ(pair.post(IBV_WR_RDMA_WRITE_WITH_IMM, 16, pair.to->rkey), 0);
  std::optional<ibv_wc> done = pair.next();
  ASSERT_TRUE(done && done->wr_id == 1000);
  EXPECT_EQ(done->opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(done->imm_data, 42U);
  EXPECT_EQ(done->byte_len, 16U);
  EXPECT_EQ(done->qp_num, pair.ends[1]->qp_num);
  EXPECT_EQ(pair.next_status(), IBV_WC_SUCCESS);
  ASSERT_EQ(pair.post(IBV_WR_SEND, 9, 0), 0);  // longer than the receive
  EXPECT_EQ(pair.next_status(), IBV_WC_REM_INV_REQ_ERR);
}

// The peer becomes ready while the request is tried again; or it does not.
TEST_F(DeviceTest, WaitsForAReceive) {
  ASSERT_EQ(pair.post(IBV_WR_SEND, 8, 0), 0);
  ibv_wc none{};
  EXPECT_EQ(ibv_poll_cq(pair.completions, 1, &none), 0);
  EXPECT_EQ(pair.next_status(), IBV_WC_RNR_RETRY_EXC_ERR);
  Pair other;
  ASSERT_EQ(other.post(IBV_WR_SEND, 8, 0), 0);
  ASSERT_EQ(other.post_receive(8), 0);
  EXPECT_EQ(other.next_status(), IBV_WC_SUCCESS);
  EXPECT_EQ(other.next_status(), IBV_WC_SUCCESS);
}

TEST_F(DeviceTest, APeerThatIsNoMoreEndsTheConnection) {
  ASSERT_EQ(ibv_destroy_qp(pair.ends[1]), 0);
  ASSERT_EQ(pair.post(IBV_WR_RDMA_WRITE, 8, pair.to->rkey), 0);
  ASSERT_EQ(pair.post(IBV_WR_RDMA_WRITE, 8, pair.to->rkey), 0);
  EXPECT_EQ(pair.next_status(), IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(pair.next_status(), IBV_WC_WR_FLUSH_ERR);
  ASSERT_EQ(pair.post(IBV_WR_RDMA_WRITE, 8, pair.to->rkey), 0);
  EXPECT_EQ(pair.next_status(), IBV_WC_WR_FLUSH_ERR);
}

TEST_F(DeviceTest, ARefusedWriteEndsBothSides) {
  ASSERT_EQ(pair.post_receive(8), 0);
  ASSERT_EQ(pair.post(IBV_WR_RDMA_WRITE, 8, pair.to->rkey ^ 1), 0);
  EXPECT_EQ(pair.next_status(), IBV_WC_WR_FLUSH_ERR);  // of the receive
  EXPECT_EQ(pair.next_status(), IBV_WC_REM_ACCESS_ERR);
  for (ibv_qp* end : pair.ends) {
    ibv_qp_attr found{};
    ibv_qp_init_attr made{};
    ASSERT_EQ(ibv_query_qp(end, &found, IBV_QP_STATE, &made), 0);
    EXPECT_EQ(found.qp_state, IBV_QPS_ERR);
  }
  EXPECT_EQ(pair.target[0], 0);
}

TEST_F(DeviceTest, NobodyWritesWhereNobodyMay) {
  for (const int access : {int{IBV_ACCESS_LOCAL_WRITE}, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ}) {
    Pair closed(access);
    ASSERT_EQ(closed.post(IBV_WR_RDMA_WRITE, 8, closed.to->rkey), 0);
    EXPECT_EQ(closed.next_status(), IBV_WC_REM_ACCESS_ERR);
  }
  Pair stranger;  // with a domain of its own
  ASSERT_EQ(stranger.post(IBV_WR_RDMA_WRITE, 8, pair.to->rkey, 0, pair.target.data()), 0);
  EXPECT_EQ(stranger.next_status(), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(DeviceTest, AWindowOpensWhatItCoversUntilItIsInvalid) {
  ibv_mw* const window = ibv_alloc_mw(pair.domain, IBV_MW_TYPE_2);
  ASSERT_NE(window, nullptr);
  const uint32_t key = ibv_inc_rkey(window->rkey);
  ibv_send_wr request{}, *bad = nullptr;
  request.opcode = IBV_WR_BIND_MW;
  request.send_flags = IBV_SEND_SIGNALED;
  request.bind_mw.mw = window;
  request.bind_mw.rkey = key;
  request.bind_mw.bind_info = {pair.to, reinterpret_cast<uint64_t>(pair.target.data()), 64, IBV_ACCESS_REMOTE_WRITE};
  ASSERT_EQ(ibv_post_send(pair.ends[1], &request, &bad), 0);
  EXPECT_EQ(pair.next_status(), IBV_WC_SUCCESS);
  ASSERT_EQ(pair.post(IBV_WR_RDMA_WRITE, 64, key), 0);
  EXPECT_EQ(pair.next_status(), IBV_WC_SUCCESS);
  EXPECT_TRUE(arrived(64));
  ibv_send_wr end{};
  end.opcode = IBV_WR_LOCAL_INV;
  end.send_flags = IBV_SEND_SIGNALED;
  end.invalidate_rkey = key;
  ASSERT_EQ(ibv_post_send(pair.ends[1], &end, &bad), 0);
  EXPECT_EQ(pair.next_status(), IBV_WC_SUCCESS);
  ASSERT_EQ(pair.post(IBV_WR_RDMA_WRITE, 64, key), 0);
  EXPECT_EQ(pair.next_status(), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(DeviceTest, AChannelTellsOfACompletion) {
  ASSERT_EQ(ibv_req_notify_cq(pair.completions, 0), 0);
  pollfd waiting{pair.channel->fd, POLLIN, 0};
  EXPECT_EQ(::poll(&waiting, 1, 0), 0);
  ASSERT_EQ(pair.post(IBV_WR_RDMA_WRITE, 8, pair.to->rkey), 0);
  ASSERT_EQ(::poll(&waiting, 1, 1000), 1);
  ibv_cq* queue = nullptr;
  void* user = nullptr;
  ASSERT_EQ(ibv_get_cq_event(pair.channel, &queue, &user), 0);
  ibv_ack_cq_events(queue, 1);
  EXPECT_EQ(queue, pair.completions);
  EXPECT_EQ(user, &pair);
}

TEST_F(DeviceTest, AQueueGrowsWithWhatItHas) {
  constexpr int kMany = 100;
  for (int i = 0; i < 10; ++i) ASSERT_EQ(pair.post(IBV_WR_RDMA_WRITE, 8, pair.to->rkey), 0);
  ASSERT_EQ(ibv_resize_cq(pair.completions, 1000), 0);
  EXPECT_GE(pair.completions->cqe, 1000);
  for (int i = 10; i < kMany; ++i) ASSERT_EQ(pair.post(IBV_WR_RDMA_WRITE, 8, pair.to->rkey), 0);
  for (int i = 0; i < kMany; ++i) ASSERT_EQ(pair.next_status(), IBV_WC_SUCCESS) << i;
}

TEST_F(DeviceTest, AQueueThatIsFullSaysSo) {
  for (int i = 0; i <= pair.completions->cqe + 1; ++i) ASSERT_EQ(pair.post(IBV_WR_RDMA_WRITE, 8, pair.to->rkey), 0);
  ibv_wc found[8];
  int count = 0;
  while ((count = ibv_poll_cq(pair.completions, 8, found)) > 0) {
  }
  EXPECT_EQ(count, -1);
}

TEST_F(DeviceTest, DatagramsNeedTheKey) {
  Pair datagrams(IBV_ACCESS_LOCAL_WRITE, IBV_QPT_UD);
  ASSERT_TRUE(datagrams.complete());
  ibv_ah_attr route{};
  route.dlid = 1;
  route.port_num = 1;
  ibv_ah* const handle = ibv_create_ah(datagrams.domain, &route);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(datagrams.post_receive(100), 0);
  for (const uint32_t key : {8U, 7U}) {
    ibv_sge sge{reinterpret_cast<uint64_t>(datagrams.source.data()), 10, datagrams.from->lkey};
    ibv_send_wr request{}, *bad = nullptr;
    request.opcode = IBV_WR_SEND;
    request.sg_list = &sge;
    request.num_sge = 1;
    request.wr.ud = {handle, datagrams.ends[1]->qp_num, key};
    ASSERT_EQ(ibv_post_send(datagrams.ends[0], &request, &bad), 0);
  }
  const std::optional<ibv_wc> done = datagrams.next();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->byte_len, 50U);  // with the header
  EXPECT_EQ(done->src_qp, datagrams.ends[0]->qp_num);
  ibv_wc more{};
  EXPECT_EQ(ibv_poll_cq(datagrams.completions, 1, &more), 0);
}

TEST_F(DeviceTest, WrongParametersAreRefused) {
  EXPECT_EQ(ibv_reg_mr(pair.domain, nullptr, 0, 0), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_reg_mr(pair.domain, reinterpret_cast<void*>(uint64_t{1} << 40), 4096, 0), nullptr);
  EXPECT_EQ(errno, EFAULT);
  ibv_qp_attr set{};
  set.qp_state = IBV_QPS_RTS;
  EXPECT_EQ(ibv_modify_qp(pair.ends[0], &set, IBV_QP_STATE), 0);
  set.qp_state = IBV_QPS_RTR;
  EXPECT_EQ(ibv_modify_qp(pair.ends[0], &set, IBV_QP_STATE), EINVAL);
}

}  // namespace
}  // namespace ibcoll::rdma_in_memory_tests
