// SPDX-License-Identifier: BSD-3-Clause
// Two queue pairs of this process, joined to each other, on the first device.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace ibcoll::rdma_in_memory_tests {

constexpr size_t kBytes = 1 << 16;

// All that a test may use. Objects live as long as the process.
struct Pair {
  ibv_context* context = nullptr;
  ibv_pd* domain = nullptr;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* completions = nullptr;
  std::array<ibv_qp*, 2> ends{};
  std::vector<uint8_t> source = std::vector<uint8_t>(kBytes), target = std::vector<uint8_t>(kBytes);
  ibv_mr *from = nullptr, *to = nullptr;

  // `access`: of the target.
  explicit Pair(int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                             IBV_ACCESS_MW_BIND,
                ibv_qp_type type = IBV_QPT_RC) {
    ibv_device** const list = ibv_get_device_list(nullptr);
    context = list && list[0] ? ibv_open_device(list[0]) : nullptr;
    if (!context) return;
    ibv_free_device_list(list);
    domain = ibv_alloc_pd(context);
    channel = ibv_create_comp_channel(context);
    completions = ibv_create_cq(context, 64, this, channel, 0);
    from = ibv_reg_mr(domain, source.data(), kBytes, int{IBV_ACCESS_LOCAL_WRITE});
    to = ibv_reg_mr(domain, target.data(), kBytes, access);
    for (ibv_qp*& end : ends) {
      ibv_qp_init_attr wanted{};
      wanted.qp_type = type;
      wanted.send_cq = wanted.recv_cq = completions;
      wanted.cap = {16, 16, 4, 1, 64};
      end = ibv_create_qp(domain, &wanted);
    }
    connect(type);
  }

  bool complete() const { return context && ends[0] && ends[1] && from && to; }

  void connect(ibv_qp_type type) {
    for (size_t i = 0; i < 2; ++i) {
      ibv_qp_attr set{};
      set.qp_state = IBV_QPS_INIT;
      set.port_num = 1;
      set.qkey = 7;
      set.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
      const bool reliable = type == IBV_QPT_RC;
      const int rights = reliable ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY;
      EXPECT_EQ(ibv_modify_qp(ends[i], &set, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | rights), 0);
      set.qp_state = IBV_QPS_RTR;
      set.dest_qp_num = ends[1 - i]->qp_num;
      set.path_mtu = IBV_MTU_1024;
      set.min_rnr_timer = 1;  // 10 us
      const int receive = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                          IBV_QP_MIN_RNR_TIMER;
      EXPECT_EQ(ibv_modify_qp(ends[i], &set, IBV_QP_STATE | (reliable ? receive : 0)), 0);
      set.qp_state = IBV_QPS_RTS;
      set.timeout = 10;  // 4 ms
      set.retry_cnt = set.rnr_retry = 2;
      const int send = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
      EXPECT_EQ(ibv_modify_qp(ends[i], &set, IBV_QP_STATE | IBV_QP_SQ_PSN | (reliable ? send : 0)), 0);
    }
  }

  // Posts a request of `bytes` from the source to the target, or to `other`, with its opcode as its id.
  int post(ibv_wr_opcode opcode, uint32_t bytes, uint32_t key, size_t end = 0, const uint8_t* other = nullptr) {
    ibv_sge sge{reinterpret_cast<uint64_t>(source.data()), bytes, from->lkey};
    ibv_send_wr request{};
    request.wr_id = opcode;
    request.opcode = opcode;
    request.send_flags = IBV_SEND_SIGNALED;
    request.sg_list = &sge;
    request.num_sge = bytes > 0 ? 1 : 0;
    request.imm_data = 42;
    request.wr.rdma = {reinterpret_cast<uint64_t>(other ? other : target.data()), key};
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(ends[end], &request, &bad);
  }
  int post_receive(uint32_t bytes, size_t end = 1) {
    ibv_sge sge{reinterpret_cast<uint64_t>(target.data()), bytes, to->lkey};
    ibv_recv_wr request{};
    request.wr_id = 1000;
    request.sg_list = &sge;
    request.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    return ibv_post_recv(ends[end], &request, &bad);
  }
  // The next completion, within a second.
  std::optional<ibv_wc> next() const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    ibv_wc found{};
    while (std::chrono::steady_clock::now() < deadline)
      if (ibv_poll_cq(completions, 1, &found) == 1) return found;
    return std::nullopt;
  }
  // Its status; -1: there is none.
  int next_status() const {
    const std::optional<ibv_wc> found = next();
    return found ? found->status : -1;
  }
};

}  // namespace ibcoll::rdma_in_memory_tests
