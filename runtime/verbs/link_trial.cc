// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/verbs/link_trial.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>

namespace ibcoll::verbs {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kLong = 32768;  // bytes
constexpr int kTries = 8;
constexpr std::chrono::milliseconds kPatience{100};

class Trial {
 public:
  explicit Trial(const char* device) : device_(device) {}

  // A reliable connection with itself.
  Status prepare(ibv_pd* domain, const Route& route, const PortChoice& choice) {
    memory_.resize(2 * kLong);
    region_.reset(ibv_reg_mr(domain, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
    if (!region_) return verbs_error(device_, "ibv_reg_mr", errno);
    completions_.reset(ibv_create_cq(domain->context, 4, nullptr, nullptr, 0));
    if (!completions_) return verbs_error(device_, "ibv_create_cq of 4 completions", errno);
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = completions_.get();
    wanted.cap = {2, 1, 1, 1, 0};
    wanted.qp_type = IBV_QPT_RC;
    queue_pair_.reset(ibv_create_qp(domain, &wanted));
    if (!queue_pair_) return verbs_error(device_, "ibv_create_qp (reliable connection)", errno);
    ibv_qp_attr attributes{};
    attributes.port_num = route.port;
    attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    Status status =
        move_to(IBV_QPS_INIT, attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    Address own;
    own.gid = choice.gid;
    own.lid = choice.port.lid;
    own.global = choice.global;
    attributes.ah_attr = route.to(own);
    attributes.path_mtu = choice.port.mtu;
    attributes.dest_qp_num = queue_pair_->qp_num;
    attributes.min_rnr_timer = 12;
    if (status.ok())
      status = move_to(IBV_QPS_RTR, attributes,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    attributes.timeout = 14;
    attributes.retry_cnt = attributes.rnr_retry = 1;
    if (status.ok())
      status = move_to(IBV_QPS_RTS, attributes,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                           IBV_QP_MAX_QP_RD_ATOMIC);
    return status;
  }

  // Microseconds from the call until the last byte has landed: the least of some tries, as whatever else happens on the
  // machine only adds.
  Result<double> least_us(uint32_t bytes) {
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kTries; ++i) {
      const Result<double> took = write_us(bytes);
      if (!took.ok()) return took;
      least = std::min(least, took.value());
      if (Clock::now() > deadline_) break;
    }
    return least;
  }

 private:
  Status move_to(ibv_qp_state state, ibv_qp_attr& attributes, int mask) {
    attributes.qp_state = state;
    const int code = ibv_modify_qp(queue_pair_.get(), &attributes, mask);
    return code == 0 ? Status() : verbs_error(device_, "ibv_modify_qp", code);
  }

  Result<double> write_us(uint32_t bytes) {
    std::byte& sent = memory_[bytes - 1];
    std::byte& landed = memory_[kLong + bytes - 1];
    sent = static_cast<std::byte>(~static_cast<unsigned char>(landed));
    ibv_sge piece{reinterpret_cast<uintptr_t>(memory_.data()), bytes, region_->lkey};
    ibv_send_wr request{};
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_WRITE;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(memory_.data() + kLong);
    request.wr.rdma.rkey = region_->rkey;
    ibv_send_wr* bad = nullptr;
    const Clock::time_point begin = Clock::now();
    if (const int code = ibv_post_send(queue_pair_.get(), &request, &bad); code != 0)
      return verbs_error(device_, "ibv_post_send", code);
    while (std::atomic_ref(landed).load(std::memory_order_acquire) != sent && Clock::now() < deadline_) {
    }
    const Clock::time_point end = Clock::now();
    ibv_wc done{};
    int count = 0;
    while ((count = ibv_poll_cq(completions_.get(), 1, &done)) == 0 && Clock::now() < deadline_) {
    }
    if (count == 1 && done.status == IBV_WC_SUCCESS)
      return std::chrono::duration<double, std::micro>(end - begin).count();
    return error(IBCOLL_ERR_TRANSPORT, "{}: a write of {} bytes to itself: {}", device_, bytes,
                 count == 1 ? ibv_wc_status_str(done.status) : "no completion within 100 ms");
  }

  const char* device_;
  const Clock::time_point deadline_ = Clock::now() + kPatience;
  std::vector<std::byte> memory_;
  MemoryRegion region_;
  CompletionQueue completions_;
  QueuePair queue_pair_;
};

double next_power_of_two(double value) { return std::exp2(std::ceil(std::log2(value))); }

}  // namespace

Result<LinkModel> try_link(ibv_pd* domain, const Route& route, const PortChoice& choice) {
  Trial trial(choice.port.device.c_str());
  if (Status status = trial.prepare(domain, route, choice); !status.ok()) return status;
  const Result<double> brief = trial.least_us(8);
  if (!brief.ok()) return brief.status();
  const Result<double> lengthy = trial.least_us(kLong);
  if (!lengthy.ok()) return lengthy.status();
  const double beta = std::max((lengthy.value() - brief.value()) / kLong, 1e-6);
  const double port = choice.port.gigabits > 0 ? 8e-3 / choice.port.gigabits : 0;
  return LinkModel{next_power_of_two(std::max(brief.value(), 0.25)), std::max(next_power_of_two(beta), port)};
}

}  // namespace ibcoll::verbs
