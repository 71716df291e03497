// SPDX-License-Identifier: BSD-3-Clause
// Unreliable datagrams: one that fits nowhere is lost, as others may be.
#include <arpa/inet.h>

#include <cerrno>

#include "tools/rdma_in_memory/completions.h"
#include "tools/rdma_in_memory/model.h"
#include "tools/rdma_in_memory/send.h"

namespace ibcoll::rdma_in_memory {
namespace {

constexpr uint32_t kHeader = sizeof(ibv_grh);  // in front of the payload, filled or not

bool takes(const SharedQueuePair& to, const QueuePair& from, const ibv_send_wr& request) {
  constexpr uint32_t kOwnKey = 1U << 31;
  const uint32_t state = to.state.load();
  const uint32_t wanted = request.wr.ud.remote_qkey, key = wanted & kOwnKey ? from.attributes.qkey : wanted;
  return to.type == IBV_QPT_UD && (state == IBV_QPS_RTR || state == IBV_QPS_RTS) && to.key == key &&
         to.number.load() == request.wr.ud.remote_qpn;
}

void write_header(const TakenReceive& taken, const SharedQueuePair& to, const ibv_ah_attr& route, size_t bytes) {
  ibv_grh header{};
  header.dgid = route.grh.dgid;
  header.paylen = htons(static_cast<uint16_t>(bytes));
  header.hop_limit = route.grh.hop_limit;
  ibv_sge element{reinterpret_cast<uint64_t>(&header), sizeof header, 0};
  ibv_send_wr only{};
  only.sg_list = &element;
  only.num_sge = 1;
  scatter(taken, to, only, 0);
}

void deliver(const SharedQueuePair& to, const QueuePair& from, const ibv_send_wr& request) {
  TakenReceive taken;
  if (!take_receive(to.receives, taken)) return;
  const size_t bytes = bytes_of(request);
  const ibv_ah_attr& route = static_cast<AddressHandle*>(request.wr.ud.ah)->route;
  ibv_wc what{};
  what.wr_id = taken.id;
  what.opcode = IBV_WC_RECV;
  what.byte_len = static_cast<uint32_t>(bytes) + kHeader;
  what.qp_num = request.wr.ud.remote_qpn;
  what.src_qp = from.qp_num;
  what.slid = 1;
  if (request.opcode == IBV_WR_SEND_WITH_IMM) {
    what.wc_flags |= IBV_WC_WITH_IMM;
    what.imm_data = request.imm_data;
  }
  if (route.is_global) {
    what.wc_flags |= IBV_WC_GRH;
    write_header(taken, to, route, bytes);
  }
  what.status = scatter(taken, to, request, kHeader) == IBV_WC_SUCCESS ? IBV_WC_SUCCESS : IBV_WC_LOC_LEN_ERR;
  add_to(to.completions, what, model().arrival(bytes));
}

}  // namespace

void send_datagram(const QueuePair& from, const ibv_send_wr& request) {
  constexpr uint64_t kLost = 2, kTwice = 2, kOf = 100;
  const SharedQueuePair& to = entry_of(request.wr.ud.remote_qpn);
  const Writing writing(shared(from));
  if (!takes(to, from, request)) return;
  const uint64_t chance = model().shuffles() ? model().pick(kOf) : kOf;
  if (chance < kLost) return;
  deliver(to, from, request);
  if (chance < kLost + kTwice) deliver(to, from, request);
}

}  // namespace ibcoll::rdma_in_memory

using namespace ibcoll::rdma_in_memory;

extern "C" {

ibv_ah* ibv_create_ah(ibv_pd* domain, ibv_ah_attr* route) {
  auto* const made = new AddressHandle();
  made->context = domain->context;
  made->pd = domain;
  made->route = *route;
  return made;
}

int ibv_destroy_ah(ibv_ah* handle) {
  delete static_cast<AddressHandle*>(handle);
  return 0;
}

}  // extern "C"
