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
constexpr int kBurst = 9;  // writes in a row
constexpr std::chrono::milliseconds kTrialTimeout{100};

class Trial {
 public:
  explicit Trial(const char* device) : device_(device) {}

  // A reliable connection with itself.
  Status prepare(ibv_pd* domain, const Route& route, const PortChoice& choice) {
    memory_.resize(2 * kLong);
    region_.reset(ibv_reg_mr(domain, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
    if (!region_) return verbs_error(device_, "ibv_reg_mr", errno);
    completions_.reset(ibv_create_cq(domain->context, kBurst, nullptr, nullptr, 0));
    if (!completions_) return verbs_error(device_, "ibv_create_cq of 9 completions", errno);
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = completions_.get();
    wanted.cap = {kBurst, 1, 1, 1, 0};
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

  bool in_order() const { return ibv_query_qp_data_in_order(queue_pair_.get(), IBV_WR_RDMA_WRITE, 0) == 1; }

  struct Took {
    double posted_us;     // until the calls that post it have returned
    double landed_us;     // until the last byte has landed
    double completed_us;  // until the completion of the last write is there
  };
  // The times of `writes` writes in a row, the least of some tries: whatever else happens on the machine only adds.
  Result<Took> least_us(uint32_t bytes, int writes) {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    Took least{kNever, kNever, kNever};
    for (int i = 0; i < kTries; ++i) {
      const Result<Took> took = write_us(bytes, writes);
      if (!took.ok()) return took;
      least.posted_us = std::min(least.posted_us, took->posted_us);
      least.landed_us = std::min(least.landed_us, took->landed_us);
      least.completed_us = std::min(least.completed_us, took->completed_us);
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

  Result<Took> write_us(uint32_t bytes, int writes) {
    std::byte& sent = memory_[bytes - 1];
    std::byte& landed = memory_[kLong + bytes - 1];
    sent = static_cast<std::byte>(~static_cast<unsigned char>(landed));
    ibv_sge sge{reinterpret_cast<uintptr_t>(memory_.data()), bytes, region_->lkey};
    ibv_send_wr request{};
    request.sg_list = &sge;
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_WRITE;
    request.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(memory_.data() + kLong);
    request.wr.rdma.rkey = region_->rkey;
    ibv_send_wr* bad = nullptr;
    const Clock::time_point begin = Clock::now();
    for (int i = 1; i <= writes; ++i) {
      request.send_flags = i == writes ? IBV_SEND_SIGNALED : 0;
      if (const int code = ibv_post_send(queue_pair_.get(), &request, &bad); code != 0)
        return verbs_error(device_, "ibv_post_send", code);
    }
    const Clock::time_point posted = Clock::now();
    while (std::atomic_ref(landed).load(std::memory_order_acquire) != sent && Clock::now() < deadline_) {
    }
    const Clock::time_point here = Clock::now();
    ibv_wc done{};
    int count = 0;
    while ((count = ibv_poll_cq(completions_.get(), 1, &done)) == 0 && Clock::now() < deadline_) {
    }
    const auto since_begin = [&](Clock::time_point end) {
      return std::chrono::duration<double, std::micro>(end - begin).count();
    };
    if (count == 1 && done.status == IBV_WC_SUCCESS)
      return Took{since_begin(posted), since_begin(here), since_begin(Clock::now())};
    return error(IBCOLL_ERR_TRANSPORT, "{}: a write of {} bytes to itself: {}", device_, bytes,
                 count == 1 ? ibv_wc_status_str(done.status) : "no completion within 100 ms");
  }

  const char* device_;
  const Clock::time_point deadline_ = Clock::now() + kTrialTimeout;
  std::vector<std::byte> memory_;
  MemoryRegion region_;
  CompletionQueue completions_;
  QueuePair queue_pair_;
};

double next_power_of_two(double value) { return std::exp2(std::ceil(std::log2(value))); }

}  // namespace

Result<LinkTrial> try_link(ibv_pd* domain, const Route& route, const PortChoice& choice) {
  Trial trial(choice.port.device.c_str());
  if (Status status = trial.prepare(domain, route, choice); !status.ok()) return status;
  const auto brief = trial.least_us(8, 1);
  if (!brief.ok()) return brief.status();
  const auto lengthy = trial.least_us(kLong, 1);
  if (!lengthy.ok()) return lengthy.status();
  const auto burst = trial.least_us(8, kBurst);
  if (!burst.ok()) return burst.status();
  const double bytes_us = lengthy->landed_us - brief->landed_us;
  const double beta = std::max(bytes_us / kLong, 1e-6);
  // A device in software moves them in the call that posts the write, or in a system call of that.
  const bool by_ranks = bytes_us > 0 && lengthy->posted_us - brief->posted_us > bytes_us / 2;
  const double port = choice.port.gigabits > 0 ? 8e-3 / choice.port.gigabits : 0;
  const double one_more = (burst->completed_us - brief->completed_us) / (kBurst - 1);  // sent and received here
  const double handled = std::max(one_more, 0.1);
  // The model adds what handling takes to alpha. Where processors do the device's work, that is nearly all.
  const double alpha = std::max(brief->landed_us - handled, 0.25);
  return LinkTrial{
      {next_power_of_two(alpha), std::max(next_power_of_two(beta), port), next_power_of_two(handled / 2), by_ranks},
      trial.in_order()};
}

}  // namespace ibcoll::verbs
