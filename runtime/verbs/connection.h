// SPDX-License-Identifier: BSD-3-Clause
// The connection with one peer: its queue pair, how far the handshake is, and where the peer's landing memory lies.
//
//   kNew --opened(), greets()--> kGreeting --becomes_ready()--> kReady
//   any with a queue pair --breaks()--> kDraining --close()--> kNew
//   kNew, for good --gives_up()--> kFailed
#pragma once

#include <algorithm>

#include "runtime/verbs/objects.h"
#include "runtime/verbs/wire.h"

namespace ibcoll::verbs {

// The data that this rank sends in the handshake of an epoch, and has received in it.
struct Handshake {
  Greeting mine;
  bool has_theirs = false;      // their greeting of this epoch: this side is ready to receive
  Time next_greeting = 0;       // when mine is repeated
  Time pause = 0;               // before that
  Time cannot_greet_since = 0;  // greetings cannot leave; 0: they can
  Time no_path_since = 0;  // the queue pair cannot be made ready for the peer's address; 0: it can, or was not tried
};

// The data that the peer sent in the handshake.
struct RemoteEnd {
  uint64_t landing_address = 0;
  uint32_t landing_key = 0;
  Notify notify = Notify::kImmediate;  // how it wants to learn of messages
  uint64_t delivered = 0;              // messages of this rank that had landed there when its queue pair was made
};

// The last completions of a queue pair in the error state.
struct Draining {
  bool sends_done = false, receives_done = false;
  Time deadline = 0;

  bool done() const { return sends_done && receives_done; }
};

class Connection {
 public:
  enum class State : uint8_t {
    kNew,       // no queue pair
    kGreeting,  // a queue pair that the peer may not know of yet
    kReady,     // messages may leave
    kDraining,  // the queue pair is in the error state; its last completions are awaited
    kFailed     // there will be no other
  };

  bool is(State state) const { return state_ == state; }
  bool ready() const { return state_ == State::kReady; }
  // The peer may write, whether or not it is known to be ready.
  bool receives() const { return ready() || (is(State::kGreeting) && handshake.has_theirs); }
  uint32_t epoch() const { return epoch_; }
  bool has_queue_pair() const { return queue_pair_ != nullptr; }
  ibv_qp* queue_pair() const { return queue_pair_.get(); }
  uint32_t inline_bytes() const { return inline_bytes_; }
  // The next epoch is at least this one.
  void want_epoch(uint32_t epoch) { wanted_epoch_ = std::max(wanted_epoch_, epoch); }
  bool wants_another() const { return wanted_epoch_ > epoch_; }

  void next_epoch() {
    epoch_ = std::max(epoch_ + 1, wanted_epoch_);
    handshake = {};
  }
  // Not ready for anything yet: it may break before it greets.
  void opened(QueuePair queue_pair, uint32_t inline_bytes) {
    queue_pair_ = std::move(queue_pair);
    inline_bytes_ = inline_bytes;
    receives_used = 0;
    draining = {};
  }
  void greets(const Greeting& mine) {
    handshake.mine = mine;
    state_ = State::kGreeting;
  }
  void has_received(const Greeting& theirs) {
    handshake.has_theirs = true;
    remote = {theirs.landing_address, theirs.landing_key, theirs.notify, theirs.delivered};
  }
  void becomes_ready() { state_ = State::kReady; }
  void breaks(Time drain_deadline) {
    state_ = State::kDraining;
    draining.deadline = drain_deadline;
  }
  // Destroys the queue pair.
  void close() {
    queue_pair_.reset();
    state_ = State::kNew;
  }
  void gives_up() { state_ = State::kFailed; }

  Handshake handshake;
  uint32_t receives_used = 0;  // and not posted again
  RemoteEnd remote;
  Draining draining;

 private:
  State state_ = State::kNew;
  uint32_t epoch_ = 0;
  uint32_t wanted_epoch_ = 0;
  uint32_t inline_bytes_ = 0;
  QueuePair queue_pair_;
};

}  // namespace ibcoll::verbs
