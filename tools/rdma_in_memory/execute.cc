// SPDX-License-Identifier: BSD-3-Clause
// One work request of a queue pair, executed by the process that posts it.
#include <algorithm>

#include "tools/rdma_in_memory/completions.h"
#include "tools/rdma_in_memory/file.h"
#include "tools/rdma_in_memory/memory.h"
#include "tools/rdma_in_memory/model.h"
#include "tools/rdma_in_memory/regions.h"
#include "tools/rdma_in_memory/send.h"

namespace ibcoll::rdma_in_memory {
namespace {

bool is_send(const ibv_send_wr& request) {
  return request.opcode == IBV_WR_SEND || request.opcode == IBV_WR_SEND_WITH_IMM;
}
bool is_read(const ibv_send_wr& request) { return request.opcode == IBV_WR_RDMA_READ; }
bool has_immediate(const ibv_send_wr& request) {
  return request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM || request.opcode == IBV_WR_SEND_WITH_IMM;
}
bool is_remote(const ibv_send_wr& request) {
  return is_send(request) || is_read(request) || has_immediate(request) || request.opcode == IBV_WR_RDMA_WRITE;
}

ibv_wc_opcode completion_of(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_BIND_MW:
      return IBV_WC_BIND_MW;
    case IBV_WR_LOCAL_INV:
      return IBV_WC_LOCAL_INV;
    default:
      return IBV_WC_SEND;
  }
}

// Writes, or reads, all elements of the request one after the other.
ibv_wc_status move(const ibv_send_wr& request, const Target& target) {
  uint64_t done = 0;
  for (int i = 0; i < request.num_sge; ++i) {
    const ibv_sge& own = request.sg_list[i];
    auto* const memory = reinterpret_cast<std::byte*>(own.addr);
    const bool moved =
        is_read(request) ? read_from(target, done, memory, own.length) : write_to(target, done, memory, own.length);
    if (!moved) return IBV_WC_RETRY_EXC_ERR;
    done += own.length;
  }
  return IBV_WC_SUCCESS;
}

void complete_receive(const TakenReceive& taken, const SharedQueuePair& at, const ibv_send_wr& request,
                      const QueuePair& from, uint64_t due) {
  ibv_wc what{};
  what.wr_id = taken.id;
  what.opcode = is_send(request) ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
  what.byte_len = static_cast<uint32_t>(bytes_of(request));
  what.qp_num = from.attributes.dest_qp_num;
  what.src_qp = from.qp_num;
  if (has_immediate(request)) {
    what.imm_data = request.imm_data;
    what.wc_flags = IBV_WC_WITH_IMM;
  }
  add_to(at.completions, what, due);
}

bool can_receive(const SharedQueuePair& peer, const QueuePair& from) {
  const uint32_t state = peer.state.load();
  return (state == IBV_QPS_RTR || state == IBV_QPS_RTS) && peer.type == IBV_QPT_RC && peer.peer == from.qp_num &&
         peer.number.load() == from.attributes.dest_qp_num;
}

bool may_access(const SharedQueuePair& peer, const ibv_send_wr& request, uint64_t bytes, Target& target) {
  const uint32_t access = is_read(request) ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
  return bytes == 0 || ((peer.access & access) != 0 &&
                        find_target(request.wr.rdma.rkey, request.wr.rdma.remote_addr, bytes, access, peer, target));
}

// kDone: `status` is how it ended, and `arrived` when.
Outcome to_peer(QueuePair& from, const ibv_send_wr& request, ibv_wc_status& status, uint64_t& arrived) {
  SharedQueuePair& peer = entry_of(from.attributes.dest_qp_num);
  const Writing writing(shared(from));
  if (!can_receive(peer, from)) return Outcome::kNoPeer;
  const uint64_t bytes = bytes_of(request);
  Target target;
  if (!is_send(request) && !may_access(peer, request, bytes, target)) {
    status = IBV_WC_REM_ACCESS_ERR;
    enter_error(peer);
    return Outcome::kDone;
  }
  TakenReceive taken;
  const bool takes = is_send(request) || has_immediate(request);
  if (takes && !take_receive(peer.receives, taken)) return Outcome::kNotReady;
  arrived = model().arrival(bytes);
  status = is_send(request) ? scatter(taken, peer, request, 0) : move(request, target);
  if (status == IBV_WC_SUCCESS && takes) complete_receive(taken, peer, request, from, arrived);
  if (status == IBV_WC_REM_INV_REQ_ERR || status == IBV_WC_REM_OP_ERR) enter_error(peer);
  return Outcome::kDone;
}

}  // namespace

size_t bytes_of(const ibv_send_wr& request) {
  size_t bytes = 0;
  for (int i = 0; i < request.num_sge; ++i) bytes += request.sg_list[i].length;
  return bytes;
}

ibv_wc_status scatter(const TakenReceive& to, const SharedQueuePair& at, const ibv_send_wr& request, uint64_t skipped) {
  uint32_t element = 0;
  uint64_t offset = skipped;  // in the element
  for (int i = 0; i < request.num_sge; ++i) {
    const auto* const from = reinterpret_cast<const std::byte*>(request.sg_list[i].addr);
    for (uint64_t done = 0; done < request.sg_list[i].length;) {
      while (element < to.count && offset >= to.sges[element].length) offset -= to.sges[element++].length;
      if (element == to.count) return IBV_WC_REM_INV_REQ_ERR;
      const ibv_sge& sge = to.sges[element];
      const uint64_t part = std::min<uint64_t>(request.sg_list[i].length - done, sge.length - offset);
      Target target;
      if (!find_target(sge.lkey, sge.addr + offset, part, IBV_ACCESS_LOCAL_WRITE, at, target) ||
          !write_to(target, 0, from + done, part))
        return IBV_WC_REM_OP_ERR;
      done += part;
      offset += part;
    }
  }
  return IBV_WC_SUCCESS;
}

void complete(QueuePair& queue_pair, const ibv_send_wr& request, ibv_wc_status status, uint64_t due) {
  if (status == IBV_WC_SUCCESS && !queue_pair.signal_all && (request.send_flags & IBV_SEND_SIGNALED) == 0) return;
  ibv_wc what{};
  what.wr_id = request.wr_id;
  what.status = status;
  what.opcode = completion_of(request.opcode);
  what.byte_len = static_cast<uint32_t>(bytes_of(request));
  what.qp_num = queue_pair.qp_num;
  add_own(queue_pair.send_cq, what, due);
  if (status != IBV_WC_SUCCESS && queue_pair.qp_type == IBV_QPT_RC) enter_error(shared(queue_pair));
}

Outcome execute(QueuePair& queue_pair, const ibv_send_wr& request) {
  ibv_wc_status status = IBV_WC_SUCCESS;
  uint64_t arrived = 0;
  if (queue_pair.qp_type == IBV_QPT_UD) {
    send_datagram(queue_pair, request);
  } else if (request.opcode == IBV_WR_BIND_MW) {
    status = bind(shared(queue_pair), request);
  } else if (request.opcode == IBV_WR_LOCAL_INV) {
    status = invalidate(shared(queue_pair), request.invalidate_rkey);
  } else if (is_remote(request)) {
    const Outcome outcome = to_peer(queue_pair, request, status, arrived);
    if (outcome != Outcome::kDone) return outcome;
  } else {
    status = IBV_WC_LOC_QP_OP_ERR;
  }
  // The acknowledgement takes as long as a message.
  complete(queue_pair, request, status, arrived == 0 ? 0 : arrived + static_cast<uint64_t>(model().latency));
  return status == IBV_WC_SUCCESS ? Outcome::kDone : Outcome::kError;
}

}  // namespace ibcoll::rdma_in_memory
