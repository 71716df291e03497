// SPDX-License-Identifier: BSD-3-Clause
// Makes connections: on first use, and again after one broke. Greetings go out until each of the two ranks knows that
// the other has its own (handshake.cc); then the queue pairs are ready, and the keys that are new follow.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "runtime/verbs/sender.h"

namespace ibcoll::verbs {

class Connector {
 public:
  Connector(Local& local, WorkRequests& requests, Exposures& exposures, Sender& sender, Recovery& recovery)
      : local_(local), requests_(requests), exposures_(exposures), sender_(sender), recovery_(recovery) {}

  // The way of IBCOLL_VERBS_CONNECT. An error of that.
  Status open(const Config& config);
  bool is_open() const { return manager_ != nullptr; }
  ConnectionManager& manager() const { return *manager_; }
  // From now on no peer may connect for the first time.
  void leave() { leaving_ = true; }

  // From kNew to kGreeting. False: the peer has failed instead. Throws std::bad_alloc, and nothing has changed. May end
  // rests, and so poll.
  bool start(Peer& peer);
  // A connection has drained. If something is to be sent to its peer, or that has begun another one, connect_drained()
  // does so too: else the next message connects.
  void note_drained() { has_drained_ = true; }
  void connect_drained() noexcept;
  // Peers whose greeting is awaited.
  const std::vector<Peer*>& greeted() const { return greeted_; }
  // No greeting of this peer is awaited any more.
  void stop_greeting(Peer& peer) { std::erase(greeted_, &peer); }
  // Answers the greetings that have arrived, and sends those that are due.
  void serve_greetings();
  // A sign that the peer has this rank's greeting. The connection is ready, once the keys are known that have changed.
  void connected(Peer& peer);
  // How long a peer whose connection broke may take to answer the greeting of the next one.
  Time time_to_answer() const;

  // A message was accepted for a connection that is not there yet.
  void note_unsent() { unsent_.store(true, std::memory_order_relaxed); }
  // Looks whether there still is one.
  void look_for_unsent() {
    if (unsent_.load(std::memory_order_relaxed)) count_unsent();
  }
  bool has_unsent() const noexcept { return unsent_.load(std::memory_order_relaxed); }
  // There is one, and the last connection was begun less than 20 ms ago. Any thread may ask.
  bool is_connecting() const noexcept;

  uint64_t connections() const { return connections_; }  // first ones and others
  uint64_t reconnections() const { return reconnections_; }

 private:
  Status make_queue_pair(QueuePair& made, uint32_t& most_inline);
  Status open_queue_pair(Peer& peer, QueuePair made, uint32_t most_inline);
  Greeting my_greeting(const Peer& peer) const;
  Status get_ready(Peer& peer, const Greeting& theirs);

  // handshake.cc
  void greet(Peer& peer);
  void cannot_reach(Peer& peer, Time& since, const Status& why);
  void rest_after(Time begin);
  void refuse(const Peer& peer, uint32_t epoch);
  void on_greeting(const Greeting& theirs);
  void answer(Peer& peer, const Greeting& theirs);
  void send_again(Peer& peer);
  void count_unsent() noexcept;
  bool send_keys(Peer& peer);

  Local& local_;
  WorkRequests& requests_;
  Exposures& exposures_;
  Sender& sender_;
  Recovery& recovery_;
  std::unique_ptr<ConnectionManager> manager_;
  std::vector<Peer*> greeted_;
  Time no_greeting_before_ = 0;  // but as an answer
  bool leaving_ = false;
  bool has_drained_ = false;
  std::atomic<bool> unsent_ = false;
  std::atomic<Time> started_at_ = 0;  // the last connection
  uint64_t connections_ = 0, reconnections_ = 0;
};

}  // namespace ibcoll::verbs
