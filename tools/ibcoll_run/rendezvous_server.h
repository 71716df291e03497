// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bootstrap/rendezvous_protocol.h"
#include "bootstrap/socket_address.h"
#include "runtime/base/unique_fd.h"
#include "tools/ibcoll_run/event_loop.h"
#include "tools/ibcoll_run/exchange.h"
#include "tools/ibcoll_run/rank_places.h"

namespace ibcoll::run {

// The server side of bootstrap/rendezvous_protocol.h. Connections of strangers cost a descriptor and a few bytes for a
// few seconds, and nothing they send is looked at. However many there are, who answers the challenge gets in, at the
// latest when it tries again. What ranks send costs no more than one blob each, what they do not read no more than a
// few answers. The loop must not run any more once the server is gone.
class RendezvousServer {
 public:
  using Seconds = std::chrono::duration<double>;

  // `hosts`: by rank. `stranger_patience`: for a connection to prove that it is a rank.
  RendezvousServer(EventLoop& loop, const rendezvous::Secret& secret, std::vector<std::string> hosts,
                   Seconds stranger_patience);
  ~RendezvousServer();

  // Listens on `address` (port 0: any) and returns where. May be called for several addresses.
  Result<SocketAddress> listen(SocketAddress address);
  // The process of the rank ended; `why` names rank and cause. Ranks that wait for it, now or later, are told.
  void rank_ended(int rank, const std::string& why);
  // Reports to the other ranks how the process of this one ended, whatever they do now. One that does not read what it
  // was sent before is left out: it knows that the job ends.
  void report_end(int rank, std::string_view how);
  // The whole job ends: exchanges fail of this cause, and not of the ranks that the end of the job ends.
  void job_ends(const std::string& why);
  // Told once when no more connections can be taken in: why.
  std::function<void(std::string)> on_trouble;
  // "rank 3 has not come" for the exchange in which ranks wait for others, and so for each of several; "": none wait.
  std::string missing() const;

 private:
  struct Message {
    std::string header;
    std::shared_ptr<const std::string> body;  // shared by all ranks that get it
  };
  struct Connection {
    UniqueFd socket;
    rendezvous::Nonce nonce{};
    EventLoop::TimerId deadline = 0;
    int rank = -1;         // -1: a stranger so far
    int series = -1;       // index of its Exchange
    bool parts = false;    // has said goodbye
    bool refused = false;  // knows the secret, and is told why it is no rank of the job
    std::string received;
    std::deque<Message> to_send;
    size_t sent_of_first = 0;
  };

  void accept_all(int listener);
  void on_ready(Connection& connection, uint32_t events);
  bool receive(Connection& connection);
  bool parse(Connection& connection);
  bool check_claim(Connection& connection);
  bool admit(Connection& connection, const rendezvous::Claim& claim);
  bool answer(Connection& connection, rendezvous::Kind kind, std::string text);
  bool handle_frame(Connection& connection, rendezvous::Kind kind, std::string_view body);
  Exchange& exchange_of(int series);
  void conclude(int series, const std::string& failure);
  void queue(Connection& connection, rendezvous::Kind kind, std::shared_ptr<const std::string> body);
  bool flush(Connection& connection);
  Connection* find(int rank, int series);
  void close(Connection& connection, const std::string& why);
  void drop_a_stranger();
  void pause_when_out_of_files(int listener);
  void leave(int series, int rank, const std::string& why);
  void report_desertion(int series, int rank);
  void report(int rank, std::string_view how, int series);

  EventLoop& loop_;
  const Seconds stranger_patience_;
  const rendezvous::Secret secret_;
  const std::vector<std::string> hosts_;  // by rank
  const int size_;
  std::vector<UniqueFd> listeners_;
  std::map<int, std::unique_ptr<Connection>> connections_;  // by descriptor
  std::map<int, Exchange> exchanges_;                       // by series
  std::map<std::pair<int, int>, Connection*> members_;      // by series and rank
  RankPlaces places_;
  std::map<int, std::string> ended_;  // ranks without a process, and why
  std::string job_end_;               // "": it goes on
  std::deque<int> strangers_;         // descriptors, oldest first
  bool trouble_told_ = false;
};

}  // namespace ibcoll::run
