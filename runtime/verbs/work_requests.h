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

// Into the peer's landing memory.
ibv_send_wr write_to(const Peer& peer, uint64_t landing_offset);
// Writes nothing; its completion says that the peer's device answers, or that what was posted before has completed.
inline ibv_send_wr empty_write(const Peer& peer) { return write_to(peer, 0); }

class WorkRequests {
 public:
  WorkRequests(const Local& local, Recovery& recovery) : local_(local), recovery_(recovery) {}

  // After what is linked already; flush() follows before anything else is done with the queue pair. An empty sge is
  // left out. False: the send queue is full.
  bool link(Peer& peer, const ibv_send_wr& request, ibv_sge sge, Work work, uint64_t sequence, bool signaled);
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
    ibv_send_wr request;
    ibv_sge sge;
  };

  void post_all(Peer& peer);

  const Local& local_;
  Recovery& recovery_;
  std::array<Linked, 16> linked_;  // of one peer
  size_t linked_count_ = 0;
};

}  // namespace ibcoll::verbs
