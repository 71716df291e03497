// SPDX-License-Identifier: BSD-3-Clause
// Work requests of all kinds, on their way to the device: linked for one peer, then posted in one call.
#pragma once

#include <array>

#include "runtime/verbs/local.h"

namespace ibcoll::verbs {

class Recovery;

// The kind of a work request, in the upper bits of its number.
enum class Work : uint64_t { kSend, kReceive, kLocal, kSendMark, kReceiveMark };

// The number of a work request as verbs hands it back: kind, epoch, peer and position in the send queue.
struct WorkId {
  explicit WorkId(uint64_t id)
      : work(static_cast<Work>(id >> 60)),
        epoch(id >> 52 & 0xff),
        rank(id >> 32 & 0xfffff),
        request(static_cast<uint32_t>(id)) {}
  Work work;
  uint32_t epoch;
  size_t rank;
  uint32_t request;
};
inline uint64_t work_id(Work work, const Peer& peer, uint64_t request) {
  return static_cast<uint64_t>(work) << 60 | static_cast<uint64_t>(peer.connection.epoch() & 0xff) << 52 |
         static_cast<uint64_t>(peer.rank) << 32 | (request & 0xffffffff);
}

// A Write into the peer's landing memory.
inline void aim(ibv_send_wr& request, const Peer& peer, uint64_t landing_offset) {
  request.opcode = IBV_WR_RDMA_WRITE;
  request.wr.rdma.remote_addr = peer.connection.remote.landing_address + landing_offset;
  request.wr.rdma.rkey = peer.connection.remote.landing_key;
}
// Copies what the request does, without its number, sources and flags.
inline void fill_in(ibv_send_wr& linked, const ibv_send_wr& request) {
  linked.opcode = request.opcode;
  linked.imm_data = request.imm_data;  // or the key that it invalidates
  linked.wr = request.wr;
  linked.bind_mw = request.bind_mw;
}
inline ibv_send_wr write_to(const Peer& peer, uint64_t landing_offset) {
  ibv_send_wr request{};
  aim(request, peer, landing_offset);
  return request;
}
// Writes nothing; its completion says that the peer's device answers, or that what was posted before has completed.
inline ibv_send_wr empty_write(const Peer& peer) { return write_to(peer, 0); }

class WorkRequests {
 public:
  WorkRequests(const Local& local, Recovery& recovery) : local_(local), recovery_(recovery) {}

  // One more request after what is linked already. The caller fills in what it does (of an earlier one, all may still be
  // there); flush() follows before anything else is done with the queue pair. An empty sge is left out. Null: the send
  // queue is full.
  ibv_send_wr* link(Peer& peer, const ibv_sge& sge, Work work, uint64_t sequence, bool signaled) {
    SendQueue& queue = peer.sending.queue;
    if (queue.room() <= (work == Work::kSend ? 1 : 0)) return nullptr;  // the last entry is for liveness checks
    if (linked_count_ == linked_.size()) flush(peer);
    Linked& linked = linked_[linked_count_];
    linked.sge = sge;
    linked.request.wr_id = work_id(work, peer, queue.posted());
    linked.request.next = nullptr;
    linked.request.sg_list = &linked.sge;
    linked.request.num_sge = sge.length > 0 ? 1 : 0;
    linked.request.send_flags =
        sge.length > 0 && sge.length <= peer.connection.inline_bytes() ? unsigned{IBV_SEND_INLINE} : 0;
    if (queue.add(sequence, signaled)) linked.request.send_flags |= IBV_SEND_SIGNALED;
    if (linked_count_ > 0) linked_[linked_count_ - 1].request.next = &linked.request;
    ++linked_count_;
    return &linked.request;
  }
  // One call of the device, and one doorbell, for all that is linked. A device that refuses it breaks the connection.
  void flush(Peer& peer) {
    if (linked_count_ > 0) post_all(peer);
  }
  // By itself. False: the send queue is full.
  bool post(Peer& peer, const ibv_send_wr& request, Work work, uint64_t sequence, bool signaled);
  // In one call. An error: the call and its error.
  Status post_receives(Peer& peer, Work work, uint32_t count) const;

 private:
  // With the memory that it names.
  struct Linked {
    ibv_send_wr request{};
    ibv_sge sge{};
  };

  void post_all(Peer& peer);

  const Local& local_;
  Recovery& recovery_;
  std::array<Linked, 16> linked_;  // of one peer
  size_t linked_count_ = 0;
};

}  // namespace ibcoll::verbs
