// SPDX-License-Identifier: BSD-3-Clause
// How this rank reaches the other ranks of a team: notes and puts, through the transport of each. Every note tells what
// this rank has completed, which returns credit.
#pragma once

#include <cstdint>
#include <new>

#include "runtime/base/buffer.h"
#include "runtime/engine/calls_in_flight.h"
#include "runtime/engine/channel.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/peer_link.h"
#include "runtime/engine/team_credit.h"
#include "runtime/engine/team_health.h"
#include "runtime/engine/team_members.h"

namespace ibcoll {

class TeamLinks {
 public:
  // All outlive it.
  TeamLinks(Engine& engine, const TeamMembers& members, const CallsInFlight& calls, TeamHealth& health) noexcept
      : engine_(engine), members_(members), calls_(calls), health_(health), credit_(engine.limits(), members.size()) {}

  Transport& transport(int peer) noexcept { return engine_.transport(members_.job_rank(peer)); }
  PeerLink link(int peer) noexcept {
    const int job = members_.job_rank(peer);
    return {peer, job, &engine_.transport(job), nullptr};
  }
  // Makes it, for a peer to which something is sent ahead, or that has sent so. nullptr: no memory.
  TeamCredit::Peer* credit_of(PeerLink& link) noexcept {
    if (!link.credit) link.credit = credit_.at(link.peer);
    return link.credit;
  }
  Note note(NoteKind kind, uint64_t bytes, uint32_t op, uint32_t signature, uint16_t index) const noexcept {
    return {members_.epoch(), bytes, op, signature, calls_.completed(), static_cast<uint16_t>(kind), index};
  }
  // False: not now, or the team has failed for lack of memory.
  bool send(PeerLink& link, const Note& note, ConstBytes payload) noexcept {
    try {
      if (!link.transport->send(link.job, note, payload)) return false;
    } catch (const std::bad_alloc&) {
      lack_memory(link.peer);
      return false;
    }
    note_left(link);
    return true;
  }
  bool send(int peer, const Note& note, ConstBytes payload) noexcept {
    PeerLink to = link(peer);
    return send(to, note, payload);
  }
  PutResult put(PeerLink& link, const RemoteRegion& to, ConstBytes from, const Note& note, uint64_t token) noexcept;
  // Before the message that tells the peer. A region without a key where memory for it is short: data then come in
  // messages.
  RemoteRegion expose(int peer, Bytes memory) noexcept;
  // Of both, false: to be repeated, also where memory is short.
  bool conceal(int peer, const RemoteRegion& region) noexcept;
  bool rest(int peer, const RemoteRegion& region) noexcept;
  // Transports return the sources of all puts.
  void want_back() noexcept;

  // False: ranks may be leaving, so no connection is opened. A rank that is not connected with this one learns of a
  // failure from others.
  void set_connects(bool connects) noexcept { connects_ = connects; }
  bool connects() const noexcept { return connects_; }
  bool is_connected(int peer) noexcept { return !transport(peer).would_connect(members_.job_rank(peer)); }
  // The peer lives, and a connection is there or may be opened.
  bool reaches(int peer) noexcept;
  // All peers can be reached, as far as is known.
  bool reaches_all() const noexcept { return connects_ && !engine_.lost().any_out_of_reach(); }

  TeamCredit& credit() noexcept { return credit_; }
  // For a message that credit().may_send() has refused. To be repeated as that is.
  void ask_for_credit(int peer) noexcept;
  // The peer has asked for credit, or says what it has completed.
  void on_completed(int peer, const Note& note) noexcept {
    if (note.index == kWantsCredit && credit_.wanted(peer)) engine_.credit_is_due();
  }
  // Reports completed collectives to peers that wait for room to run ahead. False: some could not be sent.
  bool report_completed() noexcept;
  // The next collective is the last one. A rank that has completed it may be gone, and needs no credit any more.
  void part() noexcept { parting_ = true; }

 private:
  enum CompletedIndex : uint16_t { kReturnsCredit, kWantsCredit };

  void lack_memory(int peer) noexcept;
  void note_left(PeerLink& link) noexcept {
    if (!link.credit) link.credit = credit_.find(link.peer);
    if (link.credit) TeamCredit::note_left(*link.credit, calls_.completed());
  }

  Engine& engine_;
  const TeamMembers& members_;
  const CallsInFlight& calls_;
  TeamHealth& health_;
  TeamCredit credit_;
  bool connects_ = true;
  bool parting_ = false;
};

}  // namespace ibcoll
