// SPDX-License-Identifier: BSD-3-Clause
// Calls that are one exchange of short messages, run without a task: this rank sends its messages, and takes those of
// its peers where they land as the engine brings them. What that needs to know of the peers is kept from call to call.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/collectives/framework/one_exchange.h"
#include "runtime/engine/channel.h"
#include "runtime/engine/team_links.h"

namespace ibcoll {

class ExchangeState;
class Incoming;

class ShortExchange {
 public:
  // Both outlive it.
  ShortExchange(TeamLinks& links, int rank) noexcept : links_(links), rank_(rank) {}

  // For calls of these sizes, whose messages are all eager. Throws std::bad_alloc.
  void use(const OneExchange& what, const Args& args);
  explicit operator bool() const noexcept { return static_cast<bool>(what_); }

  // ---- one call, with its arguments at the time

  void begin(const Args& args, uint32_t op, uint32_t signature) noexcept {
    args_ = &args;
    op_ = op;
    signature_ = signature;
    to_send_ = messages_out_;
    awaited_ = messages_in_;
    refused_ = false;
    for (Part& part : parts_) part.counted = part.sent = part.taken = false;
  }
  // False: not all messages could leave. The engine has to look into that.
  bool send() noexcept;
  // True: it was the message of the peer, and is where it belongs. False: it was not; if it is of this call at all, the
  // call is not short any more.
  bool take(int peer, const Note& note, ConstBytes payload) noexcept;
  // A message of the call has come that it does not take.
  void refuse() noexcept { refused_ = true; }
  bool refused() const noexcept { return refused_; }
  // All that the call is to send and to get has left, or come.
  bool complete() const noexcept { return to_send_ == 0 && awaited_ == 0 && !refused_; }
  // It is: returns the credit of its messages. True: that of some peer is due.
  bool return_credit() noexcept;
  // It is not: tells the task's exchange what was done already. False: there is no memory for that.
  bool hand_over(ExchangeState& to, Incoming& incoming) const noexcept;

 private:
  struct Part {
    PeerLink link;
    uint64_t out = 0, in = 0;  // bytes
    bool counted = false;      // this call is among those with a message to the peer
    bool sent = false;
    bool taken = false;
  };
  Part* part_of(int peer) noexcept;
  bool send(Part& part) noexcept;

  TeamLinks& links_;
  const int rank_;
  OneExchange what_;
  std::vector<Part> parts_;  // of the peers from what_.first on, this rank's own among them
  uint32_t messages_out_ = 0, messages_in_ = 0;
  // of the present call
  const Args* args_ = nullptr;
  uint32_t op_ = 0;
  uint32_t signature_ = 0;
  uint32_t to_send_ = 0;
  uint32_t awaited_ = 0;
  bool refused_ = false;
};

}  // namespace ibcoll
