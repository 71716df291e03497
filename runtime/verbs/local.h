// SPDX-License-Identifier: BSD-3-Clause
// The state that all parts of the transport use: this rank's number, settings and adapter, the peers that it talks to,
// and the events for its caller.
#pragma once

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/machine/process_watch.h"
#include "runtime/transport/event_outbox.h"
#include "runtime/verbs/adapter.h"
#include "runtime/verbs/peer.h"

namespace ibcoll::verbs {

using State = Connection::State;
using Outbox = EventOutbox<Peer, Peer*>;  // lends landing slots: those of a peer

constexpr Time kMillisecond = 1'000'000;

inline Time now() { return static_cast<Time>(std::chrono::steady_clock::now().time_since_epoch().count()); }

struct Settings {
  Notify notify = Notify::kImmediate;
  uint8_t timeout = 16;
  uint8_t retries = 6;
  uint32_t most_queue_pairs = 0;

  // How long a device tries before it gives a packet up.
  Time retry_time() const { return (retries + 1) * (Time{4096} << timeout); }
};

class Peers {
 public:
  Peers(int own_rank, int size) : own_rank_(own_rank), by_rank_(static_cast<size_t>(size)) {}

  void set_addresses(std::vector<Address> by_rank) { addresses_ = std::move(by_rank); }
  // By rank; null: never talked to.
  const std::vector<std::unique_ptr<Peer>>& all() const { return by_rank_; }
  Peer* find(size_t rank) const { return rank < by_rank_.size() ? by_rank_[rank].get() : nullptr; }
  // Null: there is no such rank, or no address yet.
  Peer* find_or_make(int rank) {
    if (rank < 0 || static_cast<size_t>(rank) >= by_rank_.size() || rank == own_rank_ || addresses_.empty())
      return nullptr;
    std::unique_ptr<Peer>& peer = by_rank_[static_cast<size_t>(rank)];
    if (!peer) {
      peer = std::make_unique<Peer>();
      peer->rank = rank;
      ++made_;
      processes.add_if_local(rank, addresses_[static_cast<size_t>(rank)].process);
    }
    return peer.get();
  }
  size_t made() const { return made_; }

  std::vector<Peer*> with_queue_pair;
  ProcessWatch processes{ProcessWatch::Until::kEnding};

 private:
  const int own_rank_;
  std::vector<std::unique_ptr<Peer>> by_rank_;
  size_t made_ = 0;
  std::vector<Address> addresses_;
};

struct Local {
  const int rank;
  const int size;
  const uint64_t job;
  Settings settings;
  Adapter adapter;
  Peers peers;
  Outbox outbox;

  // As in Peers. With room for what the outbox may have to keep of it.
  Peer* find_or_make(int peer_rank) {
    if (Peer* const peer = peers.find(static_cast<size_t>(peer_rank))) [[likely]]
      return peer;
    outbox.reserve_failures(peers.made() + 1);
    outbox.reserve_lent(peers.made() + 1);
    return peers.find_or_make(peer_rank);
  }
};

}  // namespace ibcoll::verbs
