// SPDX-License-Identifier: BSD-3-Clause
// All that a rank keeps of one peer that it talks to.
#pragma once

#include "runtime/transport/event_outbox.h"
#include "runtime/verbs/channel.h"
#include "runtime/verbs/connection.h"
#include "runtime/verbs/liveness.h"
#include "runtime/verbs/peer_exposures.h"
#include "runtime/verbs/receiving.h"
#include "runtime/verbs/sending.h"

namespace ibcoll::verbs {

// Receives are posted by the batch. When the last one of a batch is missing, there is still one for each slot.
constexpr uint32_t kReceiveBatch = kSlots / 2;
constexpr uint32_t kReceives = kSlots + kReceiveBatch - 1;
constexpr uint32_t kReceiveDepth = kReceives + 1;  // and the mark of draining
// Every work request of every connection may complete with an error at once.
constexpr int completions_for(size_t connections) {
  return static_cast<int>(connections * (kSendDepth + 1 + kReceiveDepth));
}

struct Peer : OutboxPeer {
  Liveness liveness;
  PinnedChannel channel;
  Sending sending;
  Receiving receiving;
  Exposed exposed;        // to the peer
  NewKeys new_keys;       // of its own exposures
  Connection connection;  // its queue pair goes before the memory that it uses
  bool sent_goodbye = false;

  Status make_channel(ibv_pd* domain, Notify notify) {
    Status made = channel.make(domain);
    if (made.ok()) sending.use(*channel), receiving.use(*channel, notify);
    return made;
  }
  bool has_message() const { return receiving.has_next(); }
  // The new keys of its exposures.
  bool has_all_keys() { return new_keys.take(channel->landing.rekeys, connection.epoch()); }
  // Whether its goodbye is among the messages that were not handed out.
  bool is_leaving() const { return liveness.left() || receiving.has_goodbye(); }
};

}  // namespace ibcoll::verbs
