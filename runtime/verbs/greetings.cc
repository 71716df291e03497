// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/verbs/greetings.h"

#include <algorithm>

#include "runtime/base/log.h"
#include "runtime/verbs/devices.h"

namespace ibcoll::verbs {
namespace {

std::string address_text(const Address& address) {
  return address.global != 0 ? gid_text(address.gid) : fmt::format("LID {}", address.lid);
}

}  // namespace

ibv_ah_attr Route::to(const Address& address) const {
  ibv_ah_attr attributes{};
  attributes.port_num = port;
  attributes.sl = service_level;
  attributes.dlid = address.lid;
  if (address.global != 0) {
    attributes.is_global = 1;
    std::memcpy(attributes.grh.dgid.raw, address.gid.data(), address.gid.size());
    attributes.grh.sgid_index = gid_index;
    attributes.grh.hop_limit = 64;
    attributes.grh.traffic_class = traffic_class;
  }
  return attributes;
}

Result<std::unique_ptr<ConnectionManager>> Greetings::open(ibv_pd* domain, const Route& route, ibv_mtu mtu) {
  std::unique_ptr<Greetings> greetings(new Greetings);
  greetings->route_ = route;
  greetings->mtu_ = mtu;
  greetings->domain_ = domain;
  if (Status status = greetings->prepare(domain); !status.ok()) return status;
  return std::unique_ptr<ConnectionManager>(std::move(greetings));
}

Status Greetings::prepare(ibv_pd* domain) {
  completions_.reset(ibv_create_cq(domain->context, kReceives + kSends, nullptr, nullptr, 0));
  if (!completions_) return verbs_error(device(), "ibv_create_cq for datagrams", errno);
  region_.reset(ibv_reg_mr(domain, memory_.get(), sizeof *memory_, kLocalWrite));
  if (!region_) return verbs_error(device(), fmt::format("ibv_reg_mr of {} bytes", sizeof *memory_), errno);
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = completions_.get();
  wanted.cap = {kSends, kReceives, 1, 1, 0};
  wanted.qp_type = IBV_QPT_UD;
  wanted.sq_sig_all = 1;
  queue_pair_.reset(ibv_create_qp(domain, &wanted));
  if (!queue_pair_) return verbs_error(device(), "ibv_create_qp (unreliable datagrams)", errno);
  return make_ready();
}

// From a queue pair that is new, or was reset.
Status Greetings::make_ready() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = route_.port;
  attributes.qkey = kKey;
  int code =
      ibv_modify_qp(queue_pair_.get(), &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  attributes.qp_state = IBV_QPS_RTR;
  if (code == 0) code = ibv_modify_qp(queue_pair_.get(), &attributes, IBV_QP_STATE);
  attributes.qp_state = IBV_QPS_RTS;
  if (code == 0) code = ibv_modify_qp(queue_pair_.get(), &attributes, IBV_QP_STATE | IBV_QP_SQ_PSN);
  if (code != 0) return verbs_error(device(), "ibv_modify_qp (unreliable datagrams)", code);
  for (int i = 0; i < kReceives; ++i)
    if (!post_receive(i)) return verbs_error(device(), "ibv_post_recv (unreliable datagrams)", errno);
  free_count_ = 0;
  for (int i = 0; i < kSends; ++i) free_sends_[static_cast<size_t>(free_count_++)] = static_cast<uint8_t>(i);
  return {};
}

// A datagram that could not leave (soft-RoCE: the link was down for a moment) stops the queue pair. Greetings that are
// lost by that are repeated.
void Greetings::recover() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RESET;
  if (const int code = ibv_modify_qp(queue_pair_.get(), &attributes, IBV_QP_STATE); code != 0) {
    recovery_ = verbs_error(device(), "ibv_modify_qp to RESET (unreliable datagrams)", code);
    return;
  }
  for (ibv_wc done; ibv_poll_cq(completions_.get(), 1, &done) == 1;) {
  }
  recovery_ = make_ready();
  stopped_ = !recovery_.ok();
  log(LogLevel::kInfo, "{}: the queue pair for greetings had stopped: {}", device(),
      stopped_ ? recovery_.text() : "it goes on");
}

bool Greetings::post_receive(int i) {
  ibv_sge sge{reinterpret_cast<uintptr_t>(&memory_->received[i]), sizeof memory_->received[i], region_->lkey};
  ibv_recv_wr request{};
  request.wr_id = static_cast<uint64_t>(i);
  request.sg_list = &sge;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(queue_pair_.get(), &request, &bad) == 0;
}

void Greetings::set_addresses(std::vector<Address> by_rank) {
  addresses_ = std::move(by_rank);
  handles_.resize(addresses_.size());
}

Status Greetings::send(int to, const Greeting& greeting) {
  if (stopped_) return recovery_;
  if (free_count_ == 0) return {};  // as if lost
  const auto rank = static_cast<size_t>(to);
  if (!handles_[rank]) {
    ibv_ah_attr attributes = route_.to(addresses_[rank]);
    handles_[rank].reset(ibv_create_ah(domain_, &attributes));
    if (!handles_[rank])
      return verbs_error(device(), fmt::format("ibv_create_ah to {}", address_text(addresses_[rank])), errno);
  }
  const uint8_t i = free_sends_[static_cast<size_t>(--free_count_)];
  memory_->sent[i] = greeting;
  ibv_sge sge{reinterpret_cast<uintptr_t>(&memory_->sent[i]), sizeof(Greeting), region_->lkey};
  ibv_send_wr request{};
  request.wr_id = kReceives + static_cast<uint64_t>(i);
  request.sg_list = &sge;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.wr.ud.ah = handles_[rank].get();
  request.wr.ud.remote_qpn = addresses_[rank].queue_pair;
  request.wr.ud.remote_qkey = kKey;
  ibv_send_wr* bad = nullptr;
  const int code = ibv_post_send(queue_pair_.get(), &request, &bad);
  if (code == 0) return {};
  free_sends_[static_cast<size_t>(free_count_++)] = i;
  return verbs_error(device(), "ibv_post_send (unreliable datagrams)", code);
}

bool Greetings::receive(Greeting& greeting) {
  for (ibv_wc done; ibv_poll_cq(completions_.get(), 1, &done) == 1;) {
    if (done.wr_id >= kReceives) {  // lost or not: it is repeated until answered
      free_sends_[static_cast<size_t>(free_count_++)] = static_cast<uint8_t>(done.wr_id - kReceives);
      stopped_ = stopped_ || done.status != IBV_WC_SUCCESS;
      continue;
    }
    if (done.status == IBV_WC_WR_FLUSH_ERR) {
      stopped_ = true;
      continue;
    }
    const auto i = static_cast<int>(done.wr_id);
    const bool good = done.status == IBV_WC_SUCCESS && done.byte_len == sizeof memory_->received[i];
    if (good) greeting = memory_->received[i].greeting;
    post_receive(i);
    if (good) return true;
  }
  if (stopped_) recover();
  return false;
}

Status Greetings::find_path(const Greeting& theirs, ibv_qp_attr& attributes) {
  attributes.ah_attr = route_.to(addresses_[theirs.from]);
  attributes.path_mtu = static_cast<ibv_mtu>(std::min<uint8_t>(theirs.mtu, static_cast<uint8_t>(mtu_)));
  return {};
}

}  // namespace ibcoll::verbs
