// SPDX-License-Identifier: BSD-3-Clause
// Messages and puts on their way out: accepted into a slot, and posted as far as the send queue has room. They carry
// the credit for what came in; where there are none, return_credit() sends it alone.
#pragma once

#include <vector>

#include "runtime/verbs/exposures.h"
#include "runtime/verbs/work_requests.h"

namespace ibcoll::verbs {

class Sender {
 public:
  struct Counters {
    uint64_t messages_sent = 0, puts_sent = 0, bytes_sent = 0;
    uint64_t credits_returned = 0, puts_refused = 0, puts_copied = 0;
  };

  Sender(Local& local, WorkRequests& requests, Exposures& exposures)
      : local_(local), requests_(requests), exposures_(exposures) {}

  // That many peers may have to wait for room in their send queues.
  void reserve(size_t peers) {
    pumped_.reserve(peers);
    pumping_.reserve(peers);
  }

  // These three need a slot: sending.has_slot().
  void send(Peer& peer, const Note& note, std::span<const std::byte> payload);
  PutResult put(Peer& peer, const RemoteRegion& to, std::span<const std::byte> from, const Note& note, uint64_t token);
  // A message of the transport itself.
  void send_own(Peer& peer, SlotKind kind, std::span<const std::byte> payload) {
    stage(peer, kind, {}, payload);
    pump(peer);
  }

  // Posts what was accepted, in order, as far as the send queue has room.
  void pump(Peer& peer);
  // The same for all peers whose send queue had none.
  void retry_pumps();
  // Notifies the peer of what was consumed, when that is due and no message has done so.
  void return_credit(Peer& peer);
  // The source of a put is the caller's again.
  void report_sent(Peer& peer, Outgoing& out);
  // A put that was not let in.
  void report_refused(const Peer& peer, uint64_t bytes, uint64_t address, const char* why);

  // Something is to leave, or the caller waits for a source.
  bool awaits_completions() const { return puts_pending_ > 0 || !pumped_.empty(); }
  bool puts_pending() const { return puts_pending_ > 0; }

  const Counters& counters() const { return counters_; }

 private:
  void pump_later(Peer& peer);
  Slot& put_in_slot(Peer& peer, SlotKind kind, const Note& note, std::span<const std::byte> payload);
  bool link_slot(Peer& peer, uint64_t sequence, bool immediate, bool signaled);
  // The same, not inlined.
  Slot& stage(Peer& peer, SlotKind kind, const Note& note, std::span<const std::byte> payload);
  bool post_slot(Peer& peer, uint64_t sequence, bool immediate, bool signaled);
  bool post_put(Peer& peer, Outgoing& out);
  void report_copies(const Status& why);

  Local& local_;
  WorkRequests& requests_;
  Exposures& exposures_;
  std::vector<Peer*> pumped_;   // with something that is still to be posted
  std::vector<Peer*> pumping_;  // the same while retry_pumps() is at it
  uint64_t puts_pending_ = 0;   // kPending, and not reported yet
  Counters counters_;
};

}  // namespace ibcoll::verbs
