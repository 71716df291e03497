// SPDX-License-Identifier: BSD-3-Clause
// The messages that leave this rank in one collective: advertisements, reports of what it has taken, requests for bytes
// that it may not read, and data; eager, by put, or in fragments; as far as credit allows.
#pragma once

#include <cstdint>

#include "runtime/engine/exchange_state.h"
#include "runtime/engine/exchange_trace.h"

namespace ibcoll {

class Outgoing {
 public:
  // Both outlive it.
  Outgoing(ExchangeState& state, ExchangeTrace& trace) noexcept;
  // A new run begins.
  void begin() noexcept { queued_ = pending_ = 0; }

  // A piece of a message of `total` bytes; see Comm::put().
  void put(int peer, ConstBytes piece, uint64_t total) noexcept;
  // Its first message has left before the task began. `left`: else its collective was counted only.
  static void has_put(Channel& channel, bool left) noexcept {
    channel.out.ahead = true;
    if (!left) return;
    channel.out.left = true;
    channel.out.sent = 1;
    channel.credit.sent();
  }
  // A message was announced on the channel: its advertisement leaves, if it needs one.
  void advertise(Channel& channel) noexcept {
    if (!pump_advertisements(channel)) state_.retry_later(channel);
  }
  // Asks the peer for bytes that this rank may not read: it announced memory for them.
  void want(Channel& channel, uint64_t address, uint64_t bytes) noexcept;
  // Eager messages of the peer were taken: reports that when it is time.
  void report_consumed(Channel& channel) noexcept {
    if (!pump_consumed(channel)) state_.retry_later(channel);
  }
  // Sends what can leave; true when nothing is left to retry.
  bool pump(Channel& channel) noexcept;

  // The peer has memory for a message.
  void on_advertisement(Channel& channel, const Note& note, ConstBytes payload) noexcept;
  // The source of a put is reusable.
  void on_sent(Channel& channel) noexcept {
    --pending_;
    trace_.sent(channel.times);
  }
  // Handed to a transport, source not reusable yet.
  uint32_t puts_pending() const noexcept { return pending_; }
  // Pieces whose source is not reusable yet.
  uint64_t unflushed() const noexcept { return uint64_t{queued_} + pending_; }
  bool all_flushed() const noexcept { return unflushed() == 0; }
  // Messages may go to peers that are late: to their landing memory.
  bool spills() const noexcept {
    return links_.credit().spill_share() > 0 && state_.scheme() != IBCOLL_SCHEME_ZERO_COPY;
  }
  // The collective has ended: nothing is sent any more.
  void close() noexcept;

 private:
  enum class Sent { kYes, kWaits, kBusy };

  bool pump_advertisements(Channel& channel) noexcept;
  bool pump_puts(Channel& channel) noexcept;
  bool pump_consumed(Channel& channel) noexcept;
  bool pump_wanted(Channel& channel) noexcept;
  bool may_run_ahead(Channel& channel) noexcept;
  Sent send_eager(Channel& channel, Message& put) noexcept;
  Sent send_announced(Channel& channel, Message& put) noexcept;
  Sent write(Channel& channel, Message& to, ConstBytes left) noexcept;
  bool send_fragments(Channel& channel, NoteKind kind, Message& put, uint64_t end) noexcept;
  Sent spill(Channel& channel, Message& put) noexcept;

  ExchangeState& state_;
  ExchangeTrace& trace_;
  TeamLinks& links_;
  uint32_t queued_ = 0;   // pieces that were not handed to the transport yet
  uint32_t pending_ = 0;  // see puts_pending()
};

}  // namespace ibcoll
