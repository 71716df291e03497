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
#include "tools/ibcoll_run/allgather_series.h"
#include "tools/ibcoll_run/ballots.h"
#include "tools/ibcoll_run/event_loop.h"
#include "tools/ibcoll_run/rank_registry.h"

namespace ibcoll::run {

// The server side of bootstrap/rendezvous_protocol.h. A connection that has not answered the challenge costs a
// descriptor and a few bytes for a few seconds, and nothing that it sends is parsed. However many of these there are, a
// rank gets in, at the latest at its second attempt. What a rank sends takes the memory of one blob, what it does not
// read that of a few answers. The loop must not run after the server is destroyed.
class RendezvousServer {
 public:
  using Seconds = std::chrono::duration<double>;

  // `hosts`: by rank. `authentication_timeout`: until a connection has proved that it is a rank's. `keeps_going`: deaths
  // do not end the job.
  RendezvousServer(EventLoop& loop, const rendezvous::Secret& secret, std::vector<std::string> hosts,
                   Seconds authentication_timeout, bool keeps_going);
  ~RendezvousServer();

  // Listens on `address` (port 0: any) and returns where. May be called for several addresses.
  Result<SocketAddress> listen(SocketAddress address);
  // The process of the rank has ended; `why` names rank and cause. Ranks that wait for it, now or later, get it as an
  // error.
  void rank_ended(int rank, const std::string& why);
  // Reports to all other ranks how the process of this one ended. Left out: a rank that has not read its earlier
  // answers.
  void report_end(int rank, std::string_view how);
  // The whole job ends: exchanges fail with this cause, not with the ends of the ranks.
  void job_ends(const std::string& why);
  // Called once, with the reason, when no more connections can be accepted.
  std::function<void(std::string)> on_trouble;
  // Called with a rank that ballots count as dead, and whose process may run: it must end.
  std::function<void(int)> on_accused;
  // "rank 3 has not come" for each exchange in which ranks wait; "": no rank waits.
  std::string missing() const;

 private:
  struct Message {
    std::string header;
    std::shared_ptr<const std::string> body;  // shared by all ranks that get it
  };
  // What the n-th contexts of all ranks do together.
  struct Series {
    Series(const std::vector<std::string>& hosts) : exchange(hosts), ballots(hosts.size()) {}
    AllgatherSeries exchange;
    Ballots ballots;
    std::vector<int> deserters;  // have closed their connection, and their processes may run on
  };
  struct Connection {
    UniqueFd socket;
    rendezvous::Nonce nonce{};
    EventLoop::TimerId deadline = 0;
    int rank = -1;         // -1: not authenticated yet
    int series = -1;       // index of its Series
    bool parts = false;    // has said goodbye
    bool refused = false;  // authenticated, but not accepted as a rank: it gets the reason
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
  bool handle_ballot_frame(Connection& connection, rendezvous::Kind kind, std::string_view body);
  Series& series_of(int series);
  void conclude(int series, const std::string& failure);
  void announce(int series, const Ballots::Decisions& decisions);
  void accuse(int series, int accuser, int accused);
  void end_soon(int series, int rank);
  void end_deserters(int series);
  void queue(Connection& connection, rendezvous::Kind kind, std::shared_ptr<const std::string> body);
  bool flush(Connection& connection);
  Connection* find(int rank, int series);
  void close(Connection& connection, const std::string& why);
  void drop_unauthenticated();
  void pause_when_out_of_files(int listener);
  void leave(int series, int rank, const std::string& why);
  void report_desertion(int series, int rank);
  void report(int rank, std::string_view how, int series);

  EventLoop& loop_;
  const Seconds authentication_timeout_;
  const bool keeps_going_;
  const rendezvous::Secret secret_;
  const std::vector<std::string> hosts_;  // by rank
  const int size_;
  std::vector<UniqueFd> listeners_;
  std::map<int, std::unique_ptr<Connection>> connections_;  // by descriptor
  std::map<int, Series> series_;                            // by number
  std::map<std::pair<int, int>, Connection*> members_;      // by series and rank
  RankRegistry registry_;
  std::map<int, std::string> ended_;  // ranks without a process, and why
  std::string job_end_;               // "": the job runs
  std::deque<int> unauthenticated_;   // descriptors, oldest first
  bool trouble_reported_ = false;
};

}  // namespace ibcoll::run
