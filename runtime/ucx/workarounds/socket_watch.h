// SPDX-License-Identifier: BSD-3-Clause
// Watches and protects the TCP sockets of UCX, which UCX does not. Needed with every known version, but for one part
// (versions.h says which):
//
// - A silent host is found within IBCOLL_PEER_TIMEOUT. TCP's keepalive does not run while data is unacknowledged; the
//   kernel sends that again for a quarter of an hour. (TCP_USER_TIMEOUT would also end connections to a rank that lives
//   and computes: its window is closed, which counts as silence.)
// - kInheritedSockets: a program that a rank starts, or a child that it forks, does not keep the sockets open. Else its
//   peers would never notice that the rank has died.
// - kStrangers: only ranks can connect, no program on other machines and no other user of these. Every rank connects
//   from one port, which it holds, and the kernel drops what does not come from the port and the host of a rank.
// - kFailedConnect (UCX before 1.16): UCX does not learn that a connection was not made; it would end the process if it
//   was about to answer the peer (system_calls.h). It waits without end, and ibcoll reports the peer as failed.
// - A peer is disconnected by shutting its sockets down, which UCX notices as it notices a death. When UCX 1.13 closes
//   an endpoint of which half a message has left, it sends memory of its own as the rest.
//
// Which sockets are UCX's: those that listen since UCX has begun to, those that were accepted there, and those that
// lead to where another rank listens. Ranks exchange where that is, and from which port they connect.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/unique_fd.h"
#include "runtime/transport/transport.h"
#include "runtime/ucx/workarounds/tcp_sockets.h"

namespace ibcoll::ucx {

class SocketWatch {
 public:
  explicit SocketWatch(Time silence_limit);
  SocketWatch(const SocketWatch&) = delete;
  SocketWatch& operator=(const SocketWatch&) = delete;
  ~SocketWatch();

  // Identifies all sockets of the process that listen.
  static std::vector<uint64_t> listening();
  // UCX's listeners: they were not there `before`, and UCX's address names their ports. From then on no connection is
  // accepted.
  void find_listeners(const std::vector<uint64_t>& before, std::span<const std::byte> ucx_address);
  // Where this rank listens and from which port it connects: bytes for the other ranks, which begin with their length.
  std::vector<std::byte> own_addresses() const;
  static size_t bytes_of(std::span<const std::byte> serialized);  // 0: not the result of own_addresses()
  void set_addresses_of(int rank, std::span<const std::byte> serialized);
  // All ranks' addresses are known: lets them connect. Before any of them does.
  void admit_ranks();

  // UCX calls connect() for this socket, in a thread that works for `working`, or in one of UCX's own: binds the socket
  // to this rank's port.
  static thread_local SocketWatch* working;
  static void connects(int descriptor, const sockaddr* to);
  // UCX asks whether its connect() for this socket has succeeded, and it has not. True: the rank at its other end
  // counts as refused from now on, and UCX is to believe that all its connections to it exist, although nothing gets
  // through.
  static bool refuse(int descriptor);
  // The socket leads to a rank that is refused.
  static bool is_refused(int descriptor);
  // A refused rank connects again: UCX must not see that, as it still waits for its own connection.
  static bool is_of_refused(int accepted);
  bool any_refused() const { return has_new_refusals_.load(std::memory_order_relaxed); }
  // Since the last call.
  std::vector<int> refused_ranks();
  bool refuses(int rank);
  // Which connection was not made, and why; empty: the rank is not refused.
  std::string refusal_of(int rank);
  // Takes new sockets of UCX under watch.
  void adopt();
  // Shuts down all that lead to this rank. False: none is known.
  bool cut(int rank);
  // Takes new sockets under watch as well. Returns the ranks to which a connection is silent. A silent connection to an
  // unknown peer is shut down at once.
  std::vector<int> silent_ranks(Time now);
  // Why, for the report of its loss; empty: its host is not known to be silent. `waited`: how long, at most, UCX has
  // heard nothing when it reported that its time is over. It says so of some connections that break at once, too.
  std::string silence_of(int rank, Time waited) const;
  const std::string& admitted_text() const { return admitted_text_; }

 private:
  struct Socket {
    uint64_t identity = 0;
    int rank = -1;  // -1: accepted, from an unknown peer
    Host peer{};
    Time since = 0;             // first seen
    Time unanswered_since = 0;  // 0: nothing is
  };
  struct Addresses {
    std::vector<uint16_t> ports;
    std::vector<Host> hosts;
    uint16_t source = 0;  // port from which it connects; 0: any
  };

  static Time now();
  void adopt_locked(Time now);
  void take(int descriptor, Time now);
  int rank_at(const std::optional<TcpAddress>& peer) const;
  void reserve_source();
  void bind_source(int descriptor, const TcpAddress& to);
  bool share_source(int descriptor, const sockaddr* source, socklen_t length) const;
  bool silent(int descriptor, Socket& socket, Time now);
  bool is_listener(uint16_t port) const;
  void shut_early_connections() const;
  const Socket* find_locked(int descriptor) const;
  void refuse_locked(int rank, const Host& peer, int error);
  static void before_fork();
  static void after_fork();
  static void in_child();

  const Time silence_limit_;
  std::mutex mutex_;
  UniqueFd reservation_;               // holds own_.source
  std::map<int, uint64_t> listeners_;  // descriptor -> identity
  Addresses own_;
  std::vector<Addresses> by_rank_;
  std::map<TcpAddress, int> ranks_;  // by where they listen, and from where they have connected
  std::map<int, Socket> sockets_;    // by descriptor
  std::map<int, Time> connecting_;   // rank -> since when, in vain
  std::vector<Host> silent_hosts_;
  std::map<int, std::string> refusals_;  // by rank
  std::vector<int> newly_refused_;
  std::atomic<bool> has_new_refusals_ = false;
  std::string admitted_text_ = "everybody who reaches the devices above";
};

}  // namespace ibcoll::ucx
