// SPDX-License-Identifier: BSD-3-Clause
// One peer's part in one collective: the messages in both directions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/intrusive_queue.h"
#include "runtime/engine/eager_credit.h"
#include "runtime/engine/early_messages.h"
#include "runtime/engine/exchange_trace.h"
#include "runtime/engine/peer_link.h"
#include "runtime/transport/transport.h"

namespace ibcoll {

class Exchange;

// Note.kind on the wire. Note.index is a message's position, where nothing else is said.
enum class NoteKind : uint16_t {
  // payload: RemoteRegion (key 0: send fragments); bytes: size of the region; index: messages before this one that were
  // spilled whole, and needed no advertisement
  kAnnounce = 1,
  kEager,     // payload: a message or the next piece of one; bytes: size of the message
  kSpill,     // as kEager, of an announced message before its advertisement has come
  kFragment,  // payload: the next piece of an announced message; bytes: size of the message
  kLanded,    // a put's data has landed: the next piece of an announced message; payload none; bytes: size of the piece
  kConsumed,  // bytes: eager pieces of this collective taken so far (credit)
  kCompleted,  // only Note.completed matters (credit); index 1: the sender wants to learn the same of the receiver
  kProbe,      // index: CallQuestions::Probe; payload: PairBytes of this call, and records of the last ones
  kAbort,      // the team failed; see abort_note()
  kEnded,      // answer to a probe: the collective has ended at the sender
  kWanted      // "put this, I may not read it"; bytes: how much; payload: its address, in what the receiver has lent
};

// A queued put, an announced region, or the peer's advertisement of one.
struct Message {
  Message* next = nullptr;
  std::byte* data = nullptr;  // const in a put
  uint64_t bytes = 0;         // of a put: of this piece
  uint64_t total = 0;         // of a put: of the message that it is a piece of
  uint64_t moved = 0;         // of the bytes: landed; left as spill or in fragments; used by pieces
  uint64_t spilled = 0;       // of a put: left as spill
  RemoteRegion region;        // announced: as exposed to the peer
  bool advertised = false;    // announced: the advertisement has left, or none is needed
};

using MessageQueue = IntrusiveQueue<Message>;

struct Channel {
  int peer = -1;    // team rank
  int called = -1;  // by the algorithm: its rank in the Comm that last announced to it or serves it
  Channel* next_peer = nullptr;
  Exchange* exchange = nullptr;
  PeerLink link;
  // The data that come from the peer.
  struct Incoming {
    MessageQueue announced;           // not landed yet, in order
    Message* unadvertised = nullptr;  // first announced one whose advertisement has not left
    uint16_t not_advertised = 0;      // messages that landed without an advertisement: they were spilled whole
    EarlyList unexpected;             // eager messages that came before their announcement
    uint64_t bytes_announced = 0;
    uint64_t bytes_landed = 0;
    bool watched = false;  // next_landing() shall return it
    bool taken = false;    // the first message has come and was taken before the task began
  } in;
  // The data that go to the peer.
  struct Outgoing {
    MessageQueue puts;            // not sent yet, in order
    MessageQueue advertisements;  // the peer's, not used up yet
    MessageQueue wanted;          // to be asked for: addresses at the peer
    uint32_t sent = 0;            // pieces
    uint32_t announced_sent = 0;  // messages that are announced: whole
    uint32_t advertised = 0;      // advertisements that came
    bool spills = false;          // the peer is late: what is put now may go there
    bool ahead = false;           // this collective is counted among those with eager messages to the peer
    bool blocked = false;         // in the scheduler's list of channels to retry
    bool left = false;            // the first message has left before the task began
  } out;
  // When the peer is served.
  struct Service {
    bool arrived = false;  // a note of this collective came from the peer
    bool wanted = false;   // next_arrival() shall return it
    bool ready = false;    // in the list that next_ready makes
    uint64_t bytes = 0;    // that will go to it
  } service;
  EagerCredit credit;
  PeerTimes times;
  // lists
  Channel* next_arrived = nullptr;
  Channel* next_ready = nullptr;
  Channel* next_landing = nullptr;
};

}  // namespace ibcoll
