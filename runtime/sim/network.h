// SPDX-License-Identifier: BSD-3-Clause
// A network of p ranks in one process, in virtual time, from a seed. One thread. Same parameters and same calls: same
// run, to the nanosecond; trace_hash() tells two runs apart.
//
// Model: a sender's link sends one message after the other; a message's first byte takes alpha + jitter; a receiver's
// link takes one message after the other. Messages of one pair of ranks keep their order, others do not. Work of a
// rank itself takes no time.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "runtime/sim/event_queue.h"
#include "runtime/sim/message.h"
#include "runtime/sim/params.h"
#include "runtime/sim/random.h"
#include "runtime/sim/transport.h"

namespace ibcoll {

class SimNetwork {
 public:
  explicit SimNetwork(SimParams params);
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;

  const SimParams& params() const { return params_; }
  int size() const { return params_.ranks; }
  SimTransport& transport(int rank) { return *transports_[static_cast<size_t>(rank)]; }
  Time now() const { return now_; }

  // Lets the next event happen. False: there is none.
  bool advance();
  // Lets everything happen up to `time`, which becomes now.
  void advance_to(Time time);
  bool idle() const { return queue_.empty(); }

  // Makes `rank` runnable at a time.
  void wake_at(int rank, Time when) { queue_.push(when, SimEvent::kWake, static_cast<uint32_t>(rank)); }
  void wake(int rank);
  // The rank does nothing and gets nothing from then on; the others are told as params().detection says. What it sent
  // and has left its link still arrives.
  void kill(int rank, Time when) { queue_.push(when, SimEvent::kDeath, static_cast<uint32_t>(rank)); }
  int node(int rank) const { return hosts_[static_cast<size_t>(rank)].node; }
  bool alive(int rank) const { return !hosts_[static_cast<size_t>(rank)].dead; }

  // Ranks for which something has happened: an event to poll for, a credit, a wake-up.
  bool has_runnable() const { return !runnable_.empty(); }
  // One of them, at random; no longer runnable until something happens again.
  int take_runnable();

  uint64_t trace_hash() const { return trace_; }
  const SimCounters& counters() const { return counters_; }

 private:
  friend class SimTransport;
  struct Host {
    Time out_free = 0;  // when the link can send the next message
    Time in_free = 0;   // when it can receive the next
    uint32_t delivering = 0;
    int node = 0;
    bool dead = false;
    bool runnable = false;
    Time died = 0;
    Time retries = 0;  // when it is woken after a refusal
  };

  // For SimTransport.
  SimPair& pair(int from, int to);
  SimMessage& message(MessageId id) { return messages_[id]; }
  MessageId make_message(SimMessage::Kind kind, int from, int to);
  void release(MessageId id);
  void depart(MessageId id);
  void free_slot(SimPair& pair);
  void return_credits(SimPair& pair);
  bool refuse(int rank);
  SimRandom& random() { return random_; }

  void handle(const SimEvent& event);
  void arrive(MessageId id);
  void deliver(MessageId id);
  bool lost(const SimMessage& message) const;
  bool land(SimMessage& message);
  void buffer(SimMessage& message);
  void sent(MessageId id);
  void finish_put(SimPair& pair);
  void put_read(SimPair& pair);
  void unstarve(SimPair& pair);
  void credit(SimPair& pair);
  void die(int rank);
  void detect_later(int rank, int dead);
  void detect(int rank, int dead);
  const SimLink& link(int from, int to) const;
  Time jitter(const SimLink& link);
  void trace(uint64_t word) { trace_ = (trace_ ^ word) * 0x9fb21c651e98df25u, trace_ ^= trace_ >> 29; }

  SimParams params_;
  SimRandom random_;
  Time now_ = 0;
  EventQueue queue_;
  std::vector<Host> hosts_;
  std::vector<std::unique_ptr<SimTransport>> transports_;
  std::deque<SimMessage> messages_;
  std::vector<MessageId> free_messages_;
  std::deque<SimPair> pairs_;
  std::vector<int> runnable_;
  SimCounters counters_;
  uint64_t trace_ = 0;
};

}  // namespace ibcoll
