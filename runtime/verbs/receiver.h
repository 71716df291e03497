// SPDX-License-Identifier: BSD-3-Clause
// Messages on their way in: found in the slots in which they land, and handed out as events.
#pragma once

#include <span>

#include "runtime/verbs/completions.h"

namespace ibcoll::verbs {

class Receiver {
 public:
  struct Counters {
    uint64_t messages_received = 0, puts_received = 0, bytes_received = 0, puts_dropped = 0;
  };

  Receiver(Local& local, Exposures& exposures, Sender& sender, Connector& connector, Recovery& recovery,
           Completions& completions)
      : local_(local),
        exposures_(exposures),
        sender_(sender),
        connector_(connector),
        recovery_(recovery),
        completions_(completions) {}

  bool any_slot_is_written() const {
    for (const Peer* peer : local_.peers.with_queue_pair)
      if (peer->receiving.has_written()) return true;
    return false;
  }
  // Peers whose slots have messages become ready in the outbox.
  void look_at_slots();
  // The same while nothing else is to be handed out. An event for each peer that has a message.
  size_t take_from_slots(std::span<Event> events);
  // The next message of a peer that has one. False: it is no event.
  bool take_message(Peer& peer, Event& event);

  const Counters& counters() const { return counters_; }

 private:
  bool is_connected(Peer& peer);
  bool take_small_put(Peer& peer, const SlotHeader& header, const std::byte* payload);
  void report_dropped(const Peer& peer);

  Local& local_;
  Exposures& exposures_;
  Sender& sender_;
  Connector& connector_;
  Recovery& recovery_;
  Completions& completions_;
  Counters counters_;
};

}  // namespace ibcoll::verbs
