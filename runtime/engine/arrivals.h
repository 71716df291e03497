// SPDX-License-Identifier: BSD-3-Clause
// The peers that an algorithm is to serve, in order: those that have arrived, in arrival order; while none has, those
// whose message need not wait for their arrival, in the order of serve().
#pragma once

#include <cstdint>
#include <utility>

#include "runtime/engine/channel.h"

namespace ibcoll {

class Arrivals {
 public:
  void clear() noexcept {
    arrived_.clear();
    ready_.clear();
  }
  // take() shall return the peer, to which a message of `bytes` bytes will go. `waits`: for its arrival.
  void serve(Channel& c, uint64_t bytes, bool waits) noexcept {
    c.service.wanted = true;
    c.service.bytes = bytes;
    if (c.service.arrived)
      arrived_.push(&c);
    else if (!waits && !std::exchange(c.service.ready, true))
      ready_.push(&c);
  }
  // A note of the collective has come from the peer.
  void arrived(Channel& c) noexcept {
    if (std::exchange(c.service.arrived, true)) return;
    if (c.service.wanted) arrived_.push(&c);
  }
  // The first late peer from here on need not wait any more: what is put goes to its landing memory. False: there is
  // none.
  bool serve_late(Channel* from) noexcept {
    for (Channel* c = from; c; c = c->next_peer) {
      const Channel::Service& service = c->service;
      if (!service.wanted || service.arrived || service.ready || service.bytes == 0) continue;
      c->out.spills = c->service.ready = true;
      ready_.push(c);
      return true;
    }
    return false;
  }
  bool any() noexcept {
    while (!ready_.empty() && !ready_.head->service.wanted)
      ready_.pop()->service.ready = false;  // it was served as it arrived
    return !arrived_.empty() || !ready_.empty();
  }
  // Once any() is true: the next one.
  Channel& take() noexcept {
    const bool has_arrived = !arrived_.empty();
    Channel& c = has_arrived ? *arrived_.pop() : *ready_.pop();
    if (!has_arrived) c.service.ready = false;
    c.service.wanted = false;
    return c;
  }

 private:
  IntrusiveQueue<Channel, &Channel::next_arrived> arrived_;
  IntrusiveQueue<Channel, &Channel::next_ready> ready_;  // some of them have arrived and were served meanwhile
};

}  // namespace ibcoll
