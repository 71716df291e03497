// SPDX-License-Identifier: BSD-3-Clause
// The state that the parts of an exchange share: which call it is, its channels, and the memory of its messages.
#pragma once

#include <cstdint>

#include "runtime/base/arena.h"
#include "runtime/base/peer_table.h"
#include "runtime/engine/channel.h"
#include "runtime/engine/team.h"
#include "runtime/include/ibcoll.h"
#include "runtime/machine/memory_access.h"

namespace ibcoll {

class ExchangeState {
 public:
  ExchangeState(Exchange& exchange, Team& team, Arena& arena, uint32_t signature) noexcept
      : exchange_(exchange),
        team_(team),
        arena_(arena),
        signature_(signature),
        eager_limit_(team.engine().limits().eager_bytes) {
    channels_.reset(arena);
  }
  // A new run begins.
  void begin(uint32_t op, ibcoll_scheme_t scheme) noexcept { op_ = op, scheme_ = scheme; }
  // Forgets what lies in the arena.
  void release() noexcept {
    free_messages_ = nullptr;
    channels_.reset(arena_);
  }

  Team& team() const noexcept { return team_; }
  TeamLinks& links() const noexcept { return team_.links(); }
  TeamHealth& health() const noexcept { return team_.health(); }
  uint32_t op() const noexcept { return op_; }
  ibcoll_scheme_t scheme() const noexcept { return scheme_; }
  bool eager(uint64_t bytes) const noexcept { return scheme_ != IBCOLL_SCHEME_ZERO_COPY && bytes <= eager_limit_; }
  // To a peer that takes part in the same call.
  Note note(NoteKind kind, uint64_t bytes, uint32_t index) const noexcept {
    return links().note(kind, bytes, op_, signature_, static_cast<uint16_t>(index));
  }
  bool is_of_this_call(const Note& note) const noexcept { return note.signature == signature_; }

  bool is_scratch(const std::byte* data) const noexcept { return arena_.has(data); }
  // In a block of scratch memory that later collectives use again.
  bool is_long_scratch(const std::byte* data) const noexcept { return arena_.has_long(data); }
  // nullptr: there was nothing to do with the peer yet.
  Channel* find(int peer) const noexcept { return channels_.find(peer); }
  // All of them: follow next_peer.
  Channel* first() const noexcept { return channels_.first(); }
  // These make one. nullptr: no memory, and the team has failed.
  Channel* channel(int peer) noexcept {
    Channel* const c = find(peer);
    return c ? c : make_channel(peer);
  }
  Message* message() noexcept;
  void recycle(Message* message) noexcept {
    message->next = free_messages_;
    free_messages_ = message;
  }
  // What the channel has to send found no room.
  void retry_later(Channel& channel) noexcept;

  // Before a rank copies memory of the program that the kernel did not: what is not there would end the process. False:
  // so it is, and the team has failed.
  bool may_access(ConstBytes memory, Access access) noexcept;
  // Fails: `what` is `theirs` at the peer and `mine` here.
  void mismatch(int peer, uint64_t theirs, uint64_t mine, const char* what) noexcept {
    team_.questions().mismatch(peer, op_, theirs, mine, what);
  }

 private:
  Channel* make_channel(int peer) noexcept;

  Exchange& exchange_;
  Team& team_;
  Arena& arena_;
  const uint32_t signature_;
  const uint64_t eager_limit_;
  uint32_t op_ = 0;
  ibcoll_scheme_t scheme_ = IBCOLL_SCHEME_AUTO;
  Message* free_messages_ = nullptr;
  PeerTable<Channel> channels_;
};

}  // namespace ibcoll
