// SPDX-License-Identifier: BSD-3-Clause
// The arrivals at this rank in one collective: messages that it has announced or that came before, the arrivals of
// peers that it is to serve, and which data have landed.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/engine/arrivals.h"
#include "runtime/engine/exchange_state.h"
#include "runtime/engine/exchange_trace.h"
#include "runtime/engine/outgoing.h"

namespace ibcoll {

class Incoming {
 public:
  // All outlive it.
  Incoming(ExchangeState& state, ExchangeTrace& trace, Outgoing& outgoing) noexcept
      : state_(state), trace_(trace), outgoing_(outgoing) {}
  // A new run begins.
  void begin() noexcept { expected_ = landed_ = 0; }
  // All runs have the same memory: rights to write there may rest between them.
  void keep_rights() noexcept { keeps_rights_ = true; }
  // Forgets what lies in the arena.
  void release() noexcept {
    arrivals_.clear();
    landings_.clear();
  }

  // ---- for the task: see Comm. `called`: the rank in the Comm that an algorithm has used.

  void announce(int peer, Bytes into, int called) noexcept;
  void serve(int peer, uint64_t bytes, int called) noexcept;
  bool has_arrival() noexcept { return arrivals_.any(); }
  int take_arrival() noexcept { return arrivals_.take().called; }
  // One of the late peers counts as ready from now on: what is put goes to its landing memory. False: there is none.
  bool serve_late() noexcept { return arrivals_.serve_late(state_.first()); }
  void watch(int peer, int called) noexcept;
  bool has_landing() const noexcept { return !landings_.empty(); }
  int take_landing() noexcept { return landings_.pop()->called; }
  bool all_landed() const noexcept { return landed_ == expected_; }
  // "(3 of 7 messages landed)"
  std::string describe_landed() const;

  // A message of the peer was taken, where it lands, before the task began.
  void has_taken(Channel& channel, uint64_t bytes) noexcept {
    channel.in.taken = true;
    channel.credit.took(bytes);
    arrivals_.arrived(channel);
  }

  // ---- notes

  void on_advertisement(Channel& channel, const Note& note, ConstBytes payload) noexcept;
  void on_eager(Channel& channel, const Note& note, ConstBytes payload) noexcept;
  void on_spill(Channel& channel, const Note& note, ConstBytes payload) noexcept;
  void on_fragment(Channel& channel, const Note& note, ConstBytes payload) noexcept;
  void on_put(Channel& channel, const Note& note) noexcept;

  // ---- the end

  // After a failure: takes back every right to write to user memory. False: a peer is writing just now, repeat.
  bool conceal() noexcept;
  // "2, 5": the peers that still have such a right.
  std::string writers() const;
  // Messages that were not taken are dropped, and credit for those that were is returned.
  void close() noexcept;

 private:
  void announce_taken(Channel& channel, uint64_t bytes, int called) noexcept;
  bool conceal(int peer, Message& announced) noexcept;
  bool rest(int peer, Message& announced) noexcept;
  void take_eager(Channel& channel, const Note& note, ConstBytes payload) noexcept;
  void keep_unexpected(Channel& channel, const Note& note, ConstBytes payload) noexcept;
  void take_unexpected(Channel& channel) noexcept;
  void land(Channel& channel, uint64_t bytes) noexcept;

  ExchangeState& state_;
  ExchangeTrace& trace_;
  Outgoing& outgoing_;
  bool keeps_rights_ = false;
  uint64_t expected_ = 0;  // messages
  uint64_t landed_ = 0;
  Arrivals arrivals_;
  IntrusiveQueue<Channel, &Channel::next_landing> landings_;  // watched, all has landed
};

}  // namespace ibcoll
