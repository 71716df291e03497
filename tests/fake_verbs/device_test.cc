// SPDX-License-Identifier: BSD-3-Clause
// The device does what the verbs specification says, so that a library which gets on with it can be believed.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "runtime/verbs/objects.h"
#include "tests/fake_verbs/script.h"

namespace ibcoll::fake_verbs {
namespace {

constexpr int kInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kReceive = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kSend =
    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
constexpr uint32_t kDepth = 4;

// One end of a connection, with memory of its own.
struct End {
  End() {
    int count = 0;
    ibv_device** const list = ibv_get_device_list(&count);
    device.reset(ibv_open_device(list[0]));
    ibv_free_device_list(list);
    domain.reset(ibv_alloc_pd(device.get()));
    queue.reset(ibv_create_cq(device.get(), 16, nullptr, nullptr, 0));
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = queue.get();
    wanted.cap = {kDepth, kDepth, 1, 1, 0};
    wanted.qp_type = IBV_QPT_RC;
    pair.reset(ibv_create_qp(domain.get(), &wanted));
    region.reset(
        ibv_reg_mr(domain.get(), memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
    attributes.port_num = 1;
    attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    attributes.path_mtu = IBV_MTU_1024;
  }
  int move_to(ibv_qp_state state, int mask) {
    attributes.qp_state = state;
    return ibv_modify_qp(pair.get(), &attributes, mask);
  }
  void aim_at(const End& other) {
    attributes.dest_qp_num = other.pair->qp_num;
    attributes.ah_attr.is_global = 1;
    attributes.ah_attr.port_num = 1;
    attributes.ah_attr.grh.sgid_index = 3;
    ibv_gid_entry gids[4];
    ibv_query_gid_table(other.device.get(), gids, 4, 0);
    attributes.ah_attr.grh.dgid = gids[3].gid;
  }
  int post(End& to, uint32_t key, uint64_t offset, uint32_t bytes, bool immediate = false) {
    ibv_sge sge{reinterpret_cast<uint64_t>(memory.data()), bytes, region->lkey};
    ibv_send_wr request{};
    request.wr_id = ++number;
    request.sg_list = &sge;
    request.num_sge = 1;
    request.opcode = immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma = {reinterpret_cast<uint64_t>(to.memory.data()) + offset, key};
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(pair.get(), &request, &bad);
  }
  int post_receive() {
    ibv_recv_wr request{};
    ibv_recv_wr* bad = nullptr;
    return ibv_post_recv(pair.get(), &request, &bad);
  }
  bool poll() { return ibv_poll_cq(queue.get(), 1, &done) == 1; }
  // The next completion's; -1: none comes.
  int status() {
    for (int i = 0; i < 3'000; ++i)
      if (poll()) return done.status;
    return -1;
  }

  std::vector<std::byte> memory{4096};
  uint64_t number = 0;
  ibv_wc done{};
  verbs::Device device;
  verbs::ProtectionDomain domain;
  verbs::CompletionQueue queue;
  verbs::MemoryRegion region;
  verbs::QueuePair pair;
  ibv_qp_attr attributes{};
};

class DeviceTest : public testing::Test {
 protected:
  void connect() {
    for (End* end : {&a, &b}) {
      ASSERT_EQ(end->move_to(IBV_QPS_INIT, kInit), 0);
      end->aim_at(end == &a ? b : a);
      ASSERT_EQ(end->move_to(IBV_QPS_RTR, kReceive), 0);
      ASSERT_EQ(end->move_to(IBV_QPS_RTS, kSend), 0);
    }
  }
  End a, b;
};

TEST_F(DeviceTest, StatesComeInTheirOrder) {
  EXPECT_EQ(a.post_receive(), EINVAL) << "in RESET";
  EXPECT_EQ(a.move_to(IBV_QPS_RTR, kReceive), EINVAL);
  ASSERT_EQ(a.move_to(IBV_QPS_INIT, kInit), 0);
  EXPECT_EQ(a.post_receive(), 0);
  EXPECT_EQ(a.post(b, b.region->rkey, 0, 8), EINVAL) << "in INIT";
  a.aim_at(b);
  EXPECT_EQ(a.move_to(IBV_QPS_RTR, kReceive & ~IBV_QP_AV), EINVAL);
  a.attributes.path_mtu = static_cast<ibv_mtu>(IBV_MTU_4096 + 1);
  EXPECT_EQ(a.move_to(IBV_QPS_RTR, kReceive), EINVAL);
}

TEST_F(DeviceTest, ARightIsAKeyAndARange) {
  const uint32_t size = static_cast<uint32_t>(b.memory.size());
  ASSERT_NO_FATAL_FAILURE(connect());
  const auto status_of = [&](uint32_t key, uint64_t offset, uint32_t bytes) {
    for (End* end : {&a, &b}) {
      EXPECT_EQ(end->move_to(IBV_QPS_RESET, IBV_QP_STATE), 0);
      while (end->poll()) {
      }
    }
    connect();
    EXPECT_EQ(a.post(b, key == 0 ? b.region->rkey : key, offset, bytes), 0);
    return a.status();
  };
  EXPECT_EQ(status_of(0, 0, size), IBV_WC_SUCCESS);
  EXPECT_EQ(status_of(0, size - 8, 8), IBV_WC_SUCCESS);
  EXPECT_EQ(status_of(0, size - 7, 8), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(status_of(0x77, 0, 8), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(a.post(b, b.region->rkey, 0, 8), 0);
  EXPECT_EQ(a.status(), IBV_WC_WR_FLUSH_ERR) << "after an error";
}

TEST_F(DeviceTest, AReceiveIsTakenAndAwaited) {
  ASSERT_NO_FATAL_FAILURE(connect());
  ASSERT_EQ(b.post_receive(), 0);
  ASSERT_EQ(a.post(b, b.region->rkey, 0, 8, true), 0);
  EXPECT_EQ(a.status(), IBV_WC_SUCCESS);
  EXPECT_EQ(b.status(), IBV_WC_SUCCESS);
  ASSERT_EQ(a.post(b, b.region->rkey, 0, 8, true), 0);
  EXPECT_EQ(a.status(), IBV_WC_RNR_RETRY_EXC_ERR);
}

TEST_F(DeviceTest, ReceiverNotReadyMayBeEndless) {
  a.attributes.rnr_retry = 7;
  ASSERT_NO_FATAL_FAILURE(connect());
  ASSERT_EQ(a.post(b, b.region->rkey, 0, 8, true), 0);
  EXPECT_EQ(a.status(), -1);
  ASSERT_EQ(b.post_receive(), 0);
  EXPECT_EQ(a.status(), IBV_WC_SUCCESS);
}

TEST_F(DeviceTest, EntriesAreFreeWhenACompletionIsPolled) {
  ASSERT_NO_FATAL_FAILURE(connect());
  for (uint32_t i = 0; i < kDepth; ++i) EXPECT_EQ(a.post(b, b.region->rkey, 0, 8), 0);
  EXPECT_EQ(b.status(), -1) << "all has been executed by now";
  EXPECT_EQ(a.post(b, b.region->rkey, 0, 8), ENOMEM);
  EXPECT_EQ(a.status(), IBV_WC_SUCCESS);
  EXPECT_EQ(a.post(b, b.region->rkey, 0, 8), 0);
}

TEST_F(DeviceTest, AQueueOfCompletionsOverruns) {
  ASSERT_EQ(ibv_resize_cq(a.queue.get(), 2), 0);
  ASSERT_NO_FATAL_FAILURE(connect());
  for (int i = 0; i < 3; ++i) ASSERT_EQ(a.post(b, b.region->rkey, 0, 8), 0);
  EXPECT_EQ(b.status(), -1);
  EXPECT_EQ(events(0), std::vector{IBV_EVENT_CQ_ERR});
  EXPECT_EQ(ibv_poll_cq(a.queue.get(), 1, &a.done), -1);
  forget_events();
}

TEST_F(DeviceTest, NobodyAnswersForAnEndedQueuePair) {
  ASSERT_NO_FATAL_FAILURE(connect());
  ASSERT_EQ(b.move_to(IBV_QPS_ERR, IBV_QP_STATE), 0);
  ASSERT_EQ(a.post(b, b.region->rkey, 0, 8), 0);
  EXPECT_EQ(a.status(), IBV_WC_RETRY_EXC_ERR);
}

}  // namespace
}  // namespace ibcoll::fake_verbs
