// SPDX-License-Identifier: BSD-3-Clause
// What an algorithm sees of the world: the communication of one collective on one rank. Ranks are team ranks.
//
// Messages between two ranks form one sequence in each direction: the k-th put() of rank a to rank b lands in the k-th
// region that b announced to a. Sizes must agree. Empty messages do not exist: announce and put of nothing are no-ops.
//
// How a message travels depends on its size and the scheme, alike on both sides:
//   eager      (copy-based, up to the eager limit) into a landing slot at once; announce() costs nothing on the wire.
//   announced  announce() sends an advertisement, which is the arrival notice; the put waits for it. zero-copy: RDMA-like
//              write to the advertised region. Forced copy, or no right to write: fragments through landing slots.
// put() never blocks: what cannot leave yet is queued and leaves while other things are awaited.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/base/arena.h"
#include "runtime/base/buffer.h"
#include "runtime/base/peer_table.h"
#include "runtime/comm/node_window.h"
#include "runtime/comm/placement.h"
#include "runtime/comm/reduce_ops.h"
#include "runtime/comm/task.h"
#include "runtime/transport/transport.h"

namespace ibcoll {

class Team;
class Engine;
class Request;
struct EarlyMessage;

// Note.kind on the wire.
enum class NoteKind : uint16_t {
  kAnnounce = 1,  // payload: RemoteRegion (key 0: send fragments); bytes: size of the region
  kEager,         // payload: the whole message
  kFragment,      // payload: the next piece of an announced message; bytes: size of the whole
  kLanded,        // a put's data has landed; payload none; bytes: size
  kConsumed,      // bytes: eager messages of this collective taken so far (credit)
  kCompleted,     // only Note.completed matters (credit)
  kProbe,         // "I wait for you in this call"; payload: PairBytes and text; compared with the receiver's own call
  kAbort,         // the team failed; bytes: status code; payload: text
  kEnded          // answer to a probe: the collective has ended at the sender
};

// What two ranks of an alltoallv exchange, as the one sees it that tells the other; nobody else knows.
struct PairBytes {
  uint64_t sent = 0;
  uint64_t received = 0;
};

// A queued put, or an announced region.
struct Message {
  Message* next = nullptr;
  std::byte* data = nullptr;  // const in a put
  uint64_t bytes = 0;
  uint64_t moved = 0;   // fragments so far
  RemoteRegion region;  // announced: as exposed to the peer
  bool told = false;    // announced: the advertisement has left
};

struct MessageQueue {
  Message* head = nullptr;
  Message** tail = &head;
  void push(Message* message) noexcept {
    message->next = nullptr;
    *tail = message;
    tail = &message->next;
  }
  Message* pop() noexcept {
    Message* const message = head;
    head = message->next;
    if (!head) tail = &head;
    return message;
  }
};

// One peer's part in one collective.
struct Channel {
  int peer = -1;
  Channel* next_peer = nullptr;
  Comm* comm = nullptr;
  // receiving
  MessageQueue announced;              // not landed yet, in order
  Message* untold = nullptr;           // first announced one whose advertisement has not left
  EarlyMessage* unexpected = nullptr;  // eager messages that came before their announcement, in order
  EarlyMessage** unexpected_tail = &unexpected;
  uint32_t landed = 0;  // messages
  uint32_t announced_count = 0;
  uint32_t eager_taken = 0;
  uint32_t eager_taken_told = 0;
  // sending
  MessageQueue puts;            // not sent yet, in order
  MessageQueue advertisements;  // the peer's, not used yet
  uint32_t put_count = 0;
  uint32_t sent = 0;
  uint32_t eager_sent = 0;
  uint32_t eager_consumed = 0;  // told by the peer
  // arrival
  bool arrived = false;  // a note of this collective came from the peer
  bool served = false;   // next_arrival() has returned it
  bool blocked = false;  // in the engine's list of channels to retry
  Channel* next_arrived = nullptr;
  // landing
  bool in_landings = false;
  Channel* next_landing = nullptr;
};

// What a suspended task waits for.
struct Wait {
  enum class Kind : uint8_t {
    kNothing,
    kReady,
    kArrival,
    kReceived,
    kReceivedFrom,
    kLanding,
    kFlushed,
    kStep,
    kSoleStep,
    kPublished,
    kAllPublished
  };
  Kind kind = Kind::kNothing;
  int peer = -1;                        // kReady, kReceivedFrom, kPublished
  uint64_t value = 0;                   // bytes (kReady, kStep), messages (kReceivedFrom), parts (kPublished)
  const ConstBlocks* blocks = nullptr;  // kArrival
};

class Comm {
 public:
  // ---- who

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  // (rank + i) mod size, for i in (-size, size).
  int peer(int i) const noexcept {
    const int at = rank_ + i;
    return at < 0 ? at + size_ : at >= size_ ? at - size_ : at;
  }

  const Placement& placement() const noexcept { return placement_; }

  // ---- messages

  void announce(int peer, Bytes into) noexcept;
  void put(int peer, ConstBytes from) noexcept;

  struct [[nodiscard]] Awaiter {
    Comm& comm;
    Wait wait;
    bool await_ready() const noexcept { return comm.satisfied(wait); }
    void await_suspend(std::coroutine_handle<>) const noexcept { comm.suspend(wait); }
    void await_resume() const noexcept {}
  };
  struct [[nodiscard]] ArrivalAwaiter : Awaiter {
    int await_resume() const noexcept { return comm.take_arrival(*wait.blocks); }
  };

  struct [[nodiscard]] LandingAwaiter : Awaiter {
    int await_resume() const noexcept { return comm.take_landing(); }
  };

  // Until a put of `bytes` bytes to the peer can leave: at once when it is eager or empty, else when the peer arrived.
  Awaiter ready(int peer, uint64_t bytes) noexcept { return {*this, {Wait::Kind::kReady, peer, bytes, nullptr}}; }
  // The next peer to serve, each once, p - 1 in all: those that have arrived, in arrival order; while none has, peers
  // whose block of `blocks` needs no arrival (eager or empty), from rank + 1 on. `blocks` must outlive the wait.
  ArrivalAwaiter next_arrival(const ConstBlocks& blocks) noexcept {
    return {{*this, {Wait::Kind::kArrival, -1, 0, &blocks}}};
  }
  // Until all that was announced has landed.
  Awaiter received() noexcept { return {*this, {Wait::Kind::kReceived, -1, 0, nullptr}}; }
  // Until the first `messages` messages (not counting empty ones) of the peer have landed.
  Awaiter received_from(int peer, uint64_t messages) noexcept {
    return {*this, {Wait::Kind::kReceivedFrom, peer, messages, nullptr}};
  }
  // Until all that was announced to the peer has landed.
  Awaiter received_from(int peer) noexcept;
  // The next peer from which all that was announced to it has landed, in that order. One that was returned may be announced to
  // again, and is returned again then.
  LandingAwaiter next_landing() noexcept { return {*this, {Wait::Kind::kLanding, -1, 0, nullptr}}; }
  // Until the source of every put is reusable.
  Awaiter flushed() noexcept { return {*this, {Wait::Kind::kFlushed, -1, 0, nullptr}}; }

  // ---- node window: memory that the team's ranks on this node share. Steps: next_step, write own area, publish, read
  // others' areas after published(). Peers are indices within the node (NodeWindow::rank of team ranks).

  NodeWindow& node() noexcept { return *window_; }
  // Until this collective has its turn on the window and the bank of the next step, in which no rank publishes more than
  // `bytes` bytes (the same on all), is free on all ranks.
  Awaiter next_step(uint64_t bytes) noexcept { return {*this, {Wait::Kind::kStep, -1, bytes, nullptr}}; }
  // The same for a step in which one rank alone writes; it may run further ahead.
  Awaiter next_sole_step(uint64_t bytes) noexcept { return {*this, {Wait::Kind::kSoleStep, -1, bytes, nullptr}}; }
  void publish() noexcept { window_->publish(signature_); }
  // Until the local peer has published the current step.
  Awaiter published(int local) noexcept {
    return {*this, {Wait::Kind::kPublished, local, NodeWindow::kWhole, nullptr}};
  }
  // Until all local peers have.
  Awaiter all_published() noexcept { return {*this, {Wait::Kind::kAllPublished, -1, NodeWindow::kWhole, nullptr}}; }
  // A step may come in parts; publish() is the last one. Who sleeps until this rank publishes is woken by that, and by parts
  // that are worth it or that it can take on another processor.
  void publish_part(bool worth_waking = false) noexcept { window_->publish_part(signature_, worth_waking); }
  // Until the local peer has published so many parts of the step, or all.
  Awaiter published(int local, uint64_t parts) noexcept {
    return {*this, {Wait::Kind::kPublished, local, parts, nullptr}};
  }
  // One copy from the private memory of a local peer, at an address that it published. False: the collective has failed;
  // co_return, before others take what was not read for data.
  [[nodiscard]] bool read(int local, uint64_t address, Bytes into) noexcept;

  // ---- local

  static void copy(Bytes to, ConstBytes from) noexcept;
  // The same, as a part of `total` bytes that the ranks of the node write in this collective: past the caches when these
  // cannot hold them.
  static void copy_within(uint64_t total, Bytes to, ConstBytes from) noexcept;
  // Uninitialised memory until the collective ends. nullptr: the collective has failed; co_return.
  std::byte* scratch(uint64_t bytes) noexcept;
  // Ends the collective with an error on all ranks of the team.
  void fail(Status status) noexcept;
  // Fails: `what` is `theirs` at the peer and `mine` here.
  void mismatch(int peer, uint64_t theirs, uint64_t mine, const char* what) noexcept;
  // Fails: the digest of the peer's call, or of its calls so far, is another one.
  void other_call(int peer) noexcept;

  // ---- for the engine, the team and requests

  Comm(Team& team, uint32_t signature) noexcept;
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  // Ready for a new run; keeps memory.
  void reset(uint32_t op, ibcoll_scheme_t scheme, bool uses_window) noexcept;
  Arena& arena() noexcept { return arena_; }
  Team& team() noexcept { return team_; }
  uint32_t op() const noexcept { return op_; }
  uint32_t signature() const noexcept { return signature_; }
  bool satisfied(const Wait& wait) noexcept;
  // The wait of the suspended task is over.
  bool runnable() noexcept { return satisfied(wait_); }
  const Wait& wait() const noexcept { return wait_; }
  bool polls_memory() const noexcept { return wait_.kind >= Wait::Kind::kStep; }
  bool awaits_part() const noexcept {
    return wait_.kind == Wait::Kind::kPublished && wait_.value != NodeWindow::kWhole;
  }
  // The bell of the rank of the node that the wait is for.
  static constexpr int kNoBell = Doorbell::kNoBell;  // messages are on their way, too, or nobody would ring
  static constexpr int kOwnTurn = -2;                // it is for an earlier collective of this rank
  int awaited_bell() const noexcept;
  // "data of rank 6 (3 messages landed)".
  std::string describe_wait() const;

  // A message of this collective from `peer`.
  void on_note(int peer, const Note& note, ConstBytes payload) noexcept;
  void on_sent() noexcept { --puts_pending_; }
  uint32_t puts_pending() const noexcept { return puts_pending_; }
  // Sends what can leave; true when nothing is left to retry.
  bool pump(Channel& channel) noexcept;
  // Tells those it waits for which call this is.
  void probe(const Request& request) noexcept;
  // The answer of a peer to a probe.
  void on_ended(int peer) noexcept;
  // When the task is done: true when peers sent and wanted no more than it took and gave. Else the collective fails.
  bool matched() noexcept;
  // After a failure: takes back every right to write to user memory. False: a peer is writing just now, repeat.
  bool conceal() noexcept;
  // After success, or a failure and conceal(): credits are returned.
  void close() noexcept;
  // Which ranks still have the buffers of a collective that has failed.
  std::string describe_end() const;
  // Gives all memory of the run back to the arena, in one piece: the next run allocates none.
  void release() noexcept;

 private:
  friend class Team;
  void suspend(const Wait& wait) noexcept { wait_ = wait; }
  int take_arrival(const ConstBlocks& blocks) noexcept;
  int take_landing() noexcept;
  bool peer_published(int local, uint64_t parts) noexcept;
  int first_behind() const noexcept;
  bool owes_step(int peer) const noexcept;
  Channel* channel(int peer) noexcept;
  Message* message() noexcept;
  bool eager(uint64_t bytes) const noexcept;
  Note note(NoteKind kind, uint64_t bytes, uint32_t index) const noexcept;

  bool pump_advertisements(Channel& channel) noexcept;
  bool pump_puts(Channel& channel) noexcept;
  bool pump_consumed(Channel& channel) noexcept;
  enum class Sent { kYes, kWaits, kBusy };
  Sent send_eager(Channel& channel, Message& put) noexcept;
  Sent send_announced(Channel& channel, Message& put) noexcept;
  void retry_later(Channel& channel) noexcept;

  void on_announce(Channel& channel, const Note& note, ConstBytes payload) noexcept;
  void on_eager(Channel& channel, const Note& note, ConstBytes payload) noexcept;
  void on_fragment(Channel& channel, const Note& note, ConstBytes payload) noexcept;
  void on_landed(Channel& channel, const Note& note) noexcept;
  bool conceal(int peer, Message& announced) noexcept;
  void take_eager(Channel& channel, const Note& note, ConstBytes payload) noexcept;
  void land(Channel& channel) noexcept;
  bool next_eager(const ConstBlocks& blocks) noexcept;
  void mark_arrived(Channel& channel) noexcept;

  Team& team_;
  const Placement& placement_;
  int rank_;
  int size_;
  uint32_t signature_;
  uint32_t op_ = 0;
  ibcoll_scheme_t scheme_ = IBCOLL_SCHEME_AUTO;
  bool uses_window_ = false;
  NodeWindow* window_;
  uint64_t window_turn_ = 0;
  uint64_t eager_limit_ = 0;

  Wait wait_;
  uint64_t messages_expected_ = 0;
  uint64_t messages_landed_ = 0;
  uint32_t puts_queued_ = 0;     // not handed to the transport yet
  uint32_t puts_pending_ = 0;    // handed over, source not reusable yet
  Channel* arrivals_ = nullptr;  // arrived, not served, in order
  Channel** arrivals_tail_ = &arrivals_;
  Channel* landings_ = nullptr;  // all has landed, in order
  Channel** landings_tail_ = &landings_;
  int eager_scan_ = 1;  // next_arrival's position among peers that need no arrival
  Message* free_messages_ = nullptr;
  PeerTable<Channel> channels_;
  Arena arena_;
};

}  // namespace ibcoll
