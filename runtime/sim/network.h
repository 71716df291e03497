// SPDX-License-Identifier: BSD-3-Clause
// A network of p ranks in one process, in virtual time, from a seed. One thread. Same parameters and same calls: same
// run, to the nanosecond; trace_hash() differs between different runs.
//
// Model: a sender's port sends one message after the other; a message's first byte takes alpha + jitter; a receiver's
// port takes one message after the other; each is busy for the bytes and the gap. Messages of one pair of ranks keep
// their order, others do not. Work of a rank itself takes the time that charge() says: what it sends afterwards leaves
// later.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "runtime/sim/event_queue.h"
#include "runtime/sim/message.h"
#include "runtime/sim/observer.h"
#include "runtime/sim/params.h"
#include "runtime/sim/random.h"
#include "runtime/sim/transport.h"

namespace ibcoll::sim {

class Network {
 public:
  explicit Network(Params params);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  const Params& params() const { return params_; }
  int size() const { return params_.ranks; }
  Transport& transport(int rank) { return *transports_[static_cast<size_t>(rank)]; }
  Time now() const { return now_; }

  // Lets the next event happen. False: there is none.
  bool advance();
  // Lets everything happen up to `time`, which becomes now.
  void advance_to(Time time);
  bool idle() const { return queue_.empty(); }

  // Makes `rank` runnable at a time.
  void wake_at(int rank, Time when) { queue_.push(when, QueuedEvent::kWake, static_cast<uint32_t>(rank)); }
  void wake(int rank);
  // The rank does nothing and receives nothing from then on; the others are notified as params().detection says.
  // Messages that have left its link still arrive.
  void kill(int rank, Time when) { queue_.push(when, QueuedEvent::kDeath, static_cast<uint32_t>(rank)); }
  // The rank works for this time; it should not run again before busy_until().
  void charge(int rank, Time duration);
  Time busy_until(int rank) const { return hosts_[static_cast<size_t>(rank)].busy_until; }
  // Sets a flag of the rank when it has come to it, and `later` after that.
  void set_flag(int rank, std::atomic<uint64_t>& flag, uint64_t value, Time later);
  std::vector<int>& ranks_with_new_flags() { return new_flags_; }
  // Not owned; nullptr: nobody watches.
  void watch(Observer* observer) { observer_ = observer; }
  Observer* observer() const { return observer_; }
  // True for memory that stands for buffers.
  bool is_nothing(const void* memory) const {
    const auto* const at = static_cast<const std::byte*>(memory);
    return at >= params_.nothing.data() && at < params_.nothing.data() + params_.nothing.size();
  }
  int node(int rank) const { return hosts_[static_cast<size_t>(rank)].node; }
  bool alive(int rank) const { return !hosts_[static_cast<size_t>(rank)].dead; }

  // Ranks for which something has happened: an event to poll for, a credit, a wake-up.
  bool has_runnable() const { return first_runnable_ < runnable_.size(); }
  // One of them, at random, or without chance the first; no longer runnable until something happens again.
  int take_runnable();

  uint64_t trace_hash() const { return trace_; }
  const Counters& counters() const { return counters_; }

 private:
  friend class Transport;
  struct Port {
    Time out_free = 0;  // when it can send the next message
    Time in_free = 0;   // when it can receive the next
    uint32_t delivering = 0;
  };
  struct Host {
    Port port;
    Time busy_until = 0;
    int node = 0;
    bool dead = false;
    bool runnable = false;
    Time died = 0;
    Time retries = 0;  // when it is woken after a refusal
  };

  // For Transport.
  Pair& pair(int from, int to);
  Message& message(MessageId id) { return messages_[id]; }
  MessageId make_message(Message::Kind kind, int from, int to);
  void release(MessageId id);
  void depart(MessageId id);
  void free_slot(Pair& pair);
  void return_credits(Pair& pair);
  bool refuse(int rank);
  Random& random() { return random_; }

  void leave(MessageId id);
  void handle(const QueuedEvent& event);
  void arrive(MessageId id);
  void deliver(MessageId id);
  bool lost(const Message& message) const;
  bool land(Message& message);
  void buffer(Message& message);
  void sent(MessageId id);
  void finish_put(Pair& pair);
  void put_read(Pair& pair);
  void unstarve(Pair& pair);
  void credit(Pair& pair);
  void die(int rank);
  void detect_later(int rank, int dead);
  void detect(int rank, int dead);
  bool near(int from, int to) const { return node(from) == node(to); }
  const Link& link(int from, int to) const { return near(from, to) ? params_.within_node : params_.between_nodes; }
  // The port of `rank`, which is one end.
  Port& port(const Message& message, int rank);
  Time jitter(const Link& link);
  void trace(uint64_t word) { trace_ = (trace_ ^ word) * 0x9fb21c651e98df25u, trace_ ^= trace_ >> 29; }

  Params params_;
  Random random_;
  Time now_ = 0;
  EventQueue queue_;
  std::vector<Host> hosts_;
  std::vector<std::unique_ptr<Transport>> transports_;
  std::deque<Message> messages_;
  std::vector<MessageId> free_messages_;
  std::deque<Pair> pairs_;
  std::vector<int> runnable_;
  size_t first_runnable_ = 0;
  std::vector<Port> node_ports_;
  struct Flag {
    std::atomic<uint64_t>* flag;
    uint64_t value;
    int rank;
  };
  std::vector<Flag> flags_;  // to be set
  std::vector<uint32_t> free_flags_;
  std::vector<int> new_flags_;  // ranks whose flags have been set since the last question
  Observer* observer_ = nullptr;
  Counters counters_;
  uint64_t trace_ = 0;
};

}  // namespace ibcoll::sim
