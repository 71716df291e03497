// SPDX-License-Identifier: BSD-3-Clause
// The transport contract: what shm, verbs, ucx and sim promise, in words and in code. tests/conformance/ runs every
// sentence marked [Cn] on each of them.
//
// A transport moves notes (32 bytes that say what a message means), landing-slot messages (a note with a payload copied
// through pre-arranged memory) and puts (a payload written straight into an exposed region, followed by a note).
// Ranks here are job ranks.
//
//  [C1] Every accepted message and put is delivered exactly once, or its peer is reported as failed.
//  [C2] A visible note implies that its payload is visible: all of it, whether slot or put.
//  [C3] Notes from one peer come in the order in which they were accepted, messages and puts alike.
//       NOT promised: any order across peers, nor between a note and memory that other calls wrote.
//  [C4] Nothing here blocks. A call that cannot be accepted now (no credit, queue full) returns false or kBusy, changes
//       nothing, and can be repeated after a poll(). A peer that never polls does not stop traffic to other peers.
//       But conceal() may wait for a device that has to finish what was asked of it before, a second after its last
//       sign.
//  [C5] The source of send() is reusable on return. The source of put() is reusable after kDone, or after the kSent
//       event with its token. Local completion says nothing of remote visibility.
//  [C6] An event's payload stays valid until the next poll() of the same transport; the slot is reused only after that.
//  [C7] put() writes [to.address, to.address + from.size()) and nothing else; to a region that was concealed, never
//       exposed, exposed to another peer, or is too small it writes nothing: the put is dropped and the peer that owns
//       the memory stays unharmed. After conceal() returned true, no write to the region begins or continues.
//  [C8] An empty payload is allowed everywhere: a pure note.
//  [C9] A peer that died or cannot be reached any more is reported by one kPeerFailed event; calls to it then return
//       false/kBusy forever without harm. Detection may need check_peers(), and takes at most a few seconds, that of a
//       host which fell silent as long as docs/reliability.md says. Puts to it that were pending still get their kSent.
//       Where this rank itself lacks what it needs to reach the peer, the event says so and comes in the next poll(),
//       before messages. Of a peer that failed, all messages that have arrived come before the event.
//  [C10] State is O(peers talked to); connections are made on first use.
//  [C11] A region may be written by several puts, each at its own offset: `to` may name any part of an exposed region,
//       by the region's key. Nothing is promised of bytes that two puts write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/status.h"

namespace ibcoll {

class Json;

// Nanoseconds; virtual in the simulator.
using Time = uint64_t;

// Seconds; from here on a timeout is none: more need not fit into a Time.
constexpr double kForEver = 1e9;

// The meaning of a message. Transports carry it as it is, 32 bytes on every wire, and look at nothing in it.
struct Note {
  uint64_t epoch = 0;      // the team
  uint64_t bytes = 0;      // length of the message that the note is about
  uint32_t op = 0;         // sequence number of the collective in its team
  uint32_t signature = 0;  // digest of the call; the same on all ranks that call the same
  uint32_t completed = 0;  // collectives of this team that the sender has completed (returns credit)
  uint16_t kind = 0;       // NoteKind (runtime/engine/channel.h), which says what `bytes` and `index` are in it
  uint16_t index = 0;      // of a message: its position in its (collective, sender, receiver) sequence, modulo 2^16
};
static_assert(sizeof(Note) == 32);

// The right to write to one peer's memory; travels to that peer inside an announcement.
struct RemoteRegion {
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint64_t key = 0;  // 0: not exposed
};

struct Event {
  enum class Kind {
    kMessage,    // a note with the payload of send(), or the note of a put() whose payload has landed
    kSent,       // the source of put(token) is reusable
    kPeerFailed  // payload: text why; token: lack_token(), or 0
  };
  Kind kind = Kind::kMessage;
  int peer = -1;
  Note note;
  std::span<const std::byte> payload;  // empty for a put's note
  uint64_t token = 0;
};

// The token of kPeerFailed: what this rank itself lacks to reach the peer. OK: nothing, the peer failed.
constexpr uint64_t lack_token(ibcoll_status_t lack) { return static_cast<uint64_t>(static_cast<int64_t>(lack)); }
constexpr ibcoll_status_t lack_of(const Event& failure) {
  return static_cast<ibcoll_status_t>(static_cast<int64_t>(failure.token));
}

enum class PutResult {
  kBusy,     // not accepted: try again after poll()
  kPending,  // accepted; kSent will follow
  kDone,     // accepted, and the source is reusable already
  // Not accepted, and never will be: the kernel does not let this rank write there, or does not move this memory for
  // another process. The region may hold a part of the data; the caller sends all of it through slots.
  kRefused
};

// Costs of a path, for the cost model: start-up of a message, each byte, and the time that its sender and its receiver
// spend on one of many messages in a row. runtime/transport/cost_constants.h has those that are not timed.
struct LinkModel {
  // The origin of beta_us_per_byte.
  enum class Beta : uint8_t {
    kKnown,     // it was timed, or given, or is a constant of what moves the bytes
    kReported,  // by the device; the link beyond it may be slower
    kAssumed    // the device does not report it
  };
  double alpha_us = 0;
  double beta_us_per_byte = 0;
  double cpu_us = 0;
  // Ranks copy the bytes themselves, through sockets: of those that share a core one does so at a time.
  bool by_ranks = false;
  Beta beta = Beta::kKnown;
};

// Costs of moving bytes between two ranks of a node that run on different cores. What is not known is 0.
struct MemoryModel {
  double copy_us_per_byte = 0;  // of a copy into memory that they share, when the other one has read it, or out of it
  double read_us = 0;           // start-up of a single-copy read
  double read_us_per_byte = 0;
  double streamed_copy_us_per_byte = 0;  // of such copies in a row that no core's own cache holds together
};

class IBCOLL_MODULE_API Transport {
 public:
  virtual ~Transport() = default;
  virtual const char* name() const = 0;
  // Largest payload of send(), in bytes. At least 4096.
  virtual size_t slot_bytes() const = 0;

  // Where memory is short send(), expose(), put(), poll() and check_peers() throw std::bad_alloc; then nothing has been
  // sent, exposed or lost, and the call may be repeated.

  // Copies note and payload towards the peer. False: not now [C4].
  virtual bool send(int peer, const Note& note, std::span<const std::byte> payload) = 0;
  // send() to this peer would begin a connection.
  virtual bool would_connect(int /*peer*/) const { return false; }

  // Where the caller has the choice, a message of fewer bytes goes through slots: to expose memory for it costs more
  // than the copies. Ranks may differ in it.
  virtual size_t least_worth_exposing() const { return 0; }
  // Gives `peer` the right to write `memory` by put(). key 0: not possible now, or never between these two: the caller
  // receives through slots instead. The memory stays the caller's; it must call conceal(), until that returns true. The
  // peer learns of the region by a message of this transport: a put that comes before that message may be dropped.
  virtual RemoteRegion expose(int peer, std::span<std::byte> memory) = 0;
  // The same for a caller whose next call is the send() that tells the peer: the right may be given along with that
  // message.
  virtual RemoteRegion expose_with_next(int peer, std::span<std::byte> memory) { return expose(peer, memory); }
  // Takes the right back. False: not now, the peer is in the middle of a write that nobody can stop; it ends by itself,
  // or with the peer's process. A process that was stopped (SIGSTOP) delays it until it continues; a library that keeps
  // the memory although the connection is closed, for ever.
  virtual bool conceal(int peer, const RemoteRegion& region) = 0;
  // The same where all that the peer was to write has landed, by a caller that has the memory and will expose it to the
  // peer again. The right may rest: it is given again by that expose(), and taken back by end_rests() at the latest.
  // Until then the peer's device could still write there. The peer does not: it has no region that it may put to [C7].
  virtual bool rest(int peer, const RemoteRegion& region) { return conceal(peer, region); }
  // Takes all rights back that rest. May wait as conceal() may.
  virtual void end_rests() {}
  // Writes `from` to the start of `to`, a region or a part of one [C11], then delivers the note. from.size() <=
  // to.bytes.
  virtual PutResult put(int peer, const RemoteRegion& to, std::span<const std::byte> from, const Note& note,
                        uint64_t token) = 0;
  // The caller needs the sources of puts to this peer; to be repeated until all have their kSent. A peer that has taken
  // nothing for two seconds, because it was stopped perhaps, counts as failed.
  virtual void want_back(int /*peer*/) {}

  // Moves everything forward and fills in at most events.size() events; returns how many.
  virtual size_t poll(std::span<Event> events) = 0;
  // The same by a caller that has nothing else to look at, again and again while there is nothing: for about as long as
  // `looks` looks at memory take.
  virtual size_t poll_often(std::span<Event> events, uint32_t looks) {
    constexpr uint32_t kLooksPerPoll = 8;
    for (uint32_t left = looks / kLooksPerPoll;; --left)
      if (const size_t count = poll(events); count > 0 || left == 0) return count;
  }
  // Looks whether peers are alive; called now and then while a rank waits. Failures come as events.
  virtual void check_peers() = 0;
  // True for a moment after a connection was begun: messages that were accepted for it leave only in poll(), and peers
  // may wait for them. Any thread may ask.
  virtual bool needs_polling() const noexcept { return false; }
  // Messages that were accepted have not left. push() moves these, and whatever else needs no event; the events of the
  // last poll() stay valid.
  virtual bool unsent() const noexcept { return false; }
  virtual void push() {}
  // A collective has failed: peers may end at any moment from now on, so this transport may not be able to close all
  // connections in order when it ends.
  virtual void expect_disorder() noexcept {}

  virtual Time now() const = 0;
  virtual LinkModel model() const = 0;
  // The device moves messages while ranks compute.
  virtual bool moves_meanwhile() const { return !model().by_ranks; }
  // If model() was timed and may differ from run to run: a model that does not.
  virtual LinkModel steady_model() const { return model(); }
  // For ibcoll_info -d: devices, what was chosen and why, counters.
  virtual Json describe() const = 0;
};

// Memory that all ranks of one node share, and single-copy reads between them. Given by shm, and by sim.
class NodeMemory {
 public:
  virtual ~NodeMemory() = default;
  // A 4096-byte aligned part of the node's segment; the offset means the same to every rank of the node. Nobody must
  // touch it before it has memory: that is as its last user left it, zeros at first, and the same pages for ever, so
  // that they may stay registered. NO_MEMORY names how much was asked. Called by a team's leader on the node only.
  virtual Result<uint64_t> allocate(uint64_t bytes) = 0;
  virtual void release(uint64_t offset, uint64_t bytes) = 0;
  // Nothing has been written there since it was allocated, and it holds zeros.
  virtual bool zeros(uint64_t /*offset*/) const { return false; }
  // The offset that `peer`, a rank of the node that may be dead, allocated last; kNowhere: none, or it is not known.
  static constexpr uint64_t kNowhere = ~uint64_t{0};
  virtual uint64_t allocated_last(int /*peer*/) { return kNowhere; }
  // The address of these bytes in this process.
  virtual Result<std::byte*> at(uint64_t offset, uint64_t bytes) = 0;
  // It has memory after this. Repeated for the same bytes, by any rank: no effect.
  virtual Status back(uint64_t offset, uint64_t bytes) = 0;
  // The same for more than is needed just now, in a way that makes it quicker to use. False: that is too much.
  virtual bool back_all(uint64_t offset, uint64_t bytes) = 0;
  // The process of a rank of the node has not ended.
  virtual bool alive(int peer) const = 0;
  // True when this rank may read the private memory of `peer` (decided by trying, at start).
  virtual bool can_read(int peer) const = 0;
  // Copies [address, address + into.size()) of the peer's address space into `into`: one copy, no help of the peer.
  // UNSUPPORTED: the kernel does not let this rank read there any more, as after setuid(), or does not move this memory
  // for another process; the peer itself has to send it.
  virtual Status read(int peer, uint64_t address, std::span<std::byte> into) = 0;
  // Ok: all that was read since the last confirm() came from the peers. A process that got the number of a dead peer
  // can be read as well, so nobody may rely on what was read before this. One system call, however much was read.
  virtual Status confirm() = 0;
};

}  // namespace ibcoll
