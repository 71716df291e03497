// SPDX-License-Identifier: BSD-3-Clause
// Credit for eager messages over all collectives of a team: how far this rank may run ahead of each peer, and the
// credit that it has to return. Every note returns some: it says up to which collective its sender has completed all.
// A rank returns credit unasked when half of it is used up. A sender that may not continue asks once, and its peer
// answers with what it has completed, now or as soon as it completes a collective. So two ranks never wait for each
// other, however they count.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/base/arena.h"
#include "runtime/base/peer_table.h"
#include "runtime/engine/ahead.h"
#include "runtime/engine/call_numbers.h"
#include "runtime/engine/engine.h"

namespace ibcoll {

class TeamCredit {
 public:
  // The limits outlive this object.
  TeamCredit(const EngineLimits& limits, int size) noexcept
      : limits_(limits),
        spill_share_(limits.spill_bytes / static_cast<uint64_t>(std::max(1, size - 1))),
        arena_(limits.call_bytes) {
    peers_.reset(arena_);
  }
  TeamCredit(const TeamCredit&) = delete;
  TeamCredit& operator=(const TeamCredit&) = delete;

  // The state of one peer. It lasts, at its address, as long as this object.
  struct Peer {
    int peer = -1;
    Peer* next_peer = nullptr;
    Ahead ahead;
    bool asked = false;            // for credit, and has not answered
    bool wanted = false;           // it has asked for credit
    uint32_t pending = 0;          // completed collectives in which it has sent ahead, which it does not know of yet
    uint32_t pending_through = 0;  // the last of them
    uint64_t pending_bytes = 0;    // of their eager messages
    uint64_t pending_spilled = 0;  // and of those that were spilled
    uint32_t reported = 0;         // last `completed` that was sent to it
  };
  // nullptr: nothing was sent ahead to the peer, or by it.
  Peer* find(int peer) const noexcept { return peers_.find(peer); }
  // Makes one. nullptr: no memory.
  Peer* at(int peer) noexcept { return peers_.at(peer); }

  // ---- sending

  // True when the first eager message of collective `op` may go to the peer now; then the collective is counted.
  bool may_send(Peer& peer, uint32_t op) noexcept {
    return peer.ahead.begin(op, {limits_.collectives_ahead, limits_.bytes_ahead});
  }
  // Bytes of an eager message left, of a collective that was counted.
  static void sent(Peer& peer, uint32_t op, uint64_t bytes) noexcept { peer.ahead.sent(op, charged(bytes)); }
  // The same of bytes that were spilled; and how many of those are in collectives that the peer has not completed.
  static void spilled(Peer& peer, uint32_t op, uint64_t bytes) noexcept { peer.ahead.spilled(op, bytes); }
  uint64_t spilled_to(int peer) const noexcept {
    const Peer* const p = find(peer);
    return p ? p->ahead.spilled() : 0;
  }
  // The most that these may be: the share of each rank in the landing memory of another one.
  uint64_t spill_share() const noexcept { return spill_share_; }
  // A note of the peer says that it has completed all collectives up to `op`. True: that is news.
  static bool has_completed(Peer& peer, uint32_t op) noexcept {
    if (!peer.ahead.completed(op)) return false;
    peer.asked = false;
    return true;
  }
  bool peer_completed(int peer, uint32_t op) noexcept {
    Peer* const p = find(peer);
    return p && has_completed(*p, op);
  }
  // The peer was refused by may_send(), and was not asked for credit since its last news. The caller asks it then.
  bool must_ask(int peer) const noexcept {
    const Peer* const p = find(peer);
    return p && !p->asked;
  }
  void asked(int peer) noexcept { find(peer)->asked = true; }

  // ---- receiving

  // Collective `op` has ended here, in which the peer has sent so many bytes ahead. True: credit of the peer is due.
  bool ended(Peer& peer, uint32_t op, uint64_t eager_bytes, uint64_t spilled_bytes) noexcept {
    // An old number may look as if it were still to come.
    if (peer.pending == 0 || is_after(op, peer.pending_through)) peer.pending_through = op;
    ++peer.pending;
    peer.pending_bytes += charged(eager_bytes);
    peer.pending_spilled += spilled_bytes;
    return due(peer);
  }
  // The peer asks for credit. True: credit of the peer is due.
  bool wanted(int peer) noexcept;
  // A note has left for the peer. It says that this rank has completed all collectives up to `completed`.
  static void note_left(Peer& peer, uint32_t completed) noexcept {
    peer.reported = completed;
    // A peer that has asked for what is not completed yet is still waiting.
    if (peer.pending > 0 && !is_after(peer.pending_through, completed))
      peer.pending = 0, peer.pending_bytes = 0, peer.pending_spilled = 0, peer.wanted = false;
  }
  // Calls send(peer), which sends a note if it can, for each peer whose credit is due and to which `completed` is news.
  // True: no credit is due any more.
  template <typename Send>
  bool return_due(uint32_t completed, Send send) noexcept {
    bool all = true;
    for (const Peer* p = peers_.first(); p; p = p->next_peer) {
      if (!due(*p)) continue;
      if (p->reported != completed) send(p->peer);
      all = all && !due(*p);
    }
    return all;
  }

 private:
  // A peer that is late keeps a message that is not small in memory for the longest one: 128 of these use up bytes_ahead.
  static uint64_t charged(uint64_t bytes) noexcept {
    return bytes <= EarlyMessages::kSmall ? bytes : std::max<uint64_t>(bytes, 4096);
  }
  // Half of the credit is returned at a time.
  bool due(const Peer& p) const noexcept {
    return p.pending > 0 && (p.wanted || p.pending >= limits_.collectives_ahead / 2 ||
                             p.pending_bytes >= limits_.bytes_ahead / 2 || p.pending_spilled > spill_share_ / 2);
  }

  const EngineLimits& limits_;
  const uint64_t spill_share_;
  Arena arena_;  // of peers_
  PeerTable<Peer> peers_;
};

}  // namespace ibcoll
