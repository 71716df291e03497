// SPDX-License-Identifier: BSD-3-Clause
// Looks after the TCP sockets that UCX has, as UCX does not:
//
// - A host that falls silent is found within IBCOLL_PEER_TIMEOUT. TCP's keepalive does not run while data is
//   unacknowledged, the kernel sends that again for a quarter of an hour. (TCP_USER_TIMEOUT would also end connections
//   to a rank that lives and computes: its window is closed, which counts as silence.)
// - A program that a rank starts, or a child that it forks, does not keep the sockets open: its peers would never
//   notice that the rank has died.
// - Strangers cannot connect, neither from other machines nor as other users of these: every rank connects from one
//   port, which it holds, and the kernel drops what does not come from the port and the host of a rank.
// - A connection that is not made is kept from UCX, which would end the process if it was about to answer the peer
//   (system_calls.h). UCX waits for ever; ibcoll gives the peer up.
// - A peer is given up by shutting its sockets down: UCX notices that as it notices a death. When it is told to close
//   an endpoint of which half a message has left, UCX 1.13 sends memory of its own as the rest of it.
//
// Which sockets are UCX's: those that listen since UCX has begun to, those that were accepted there, and those that
// lead to where another rank listens. Ranks tell each other where that is, and from which port they connect.
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
#include "runtime/ucx/tcp_sockets.h"

namespace ibcoll::ucx {

class SocketWatch {
 public:
  explicit SocketWatch(Time patience);
  SocketWatch(const SocketWatch&) = delete;
  SocketWatch& operator=(const SocketWatch&) = delete;
  ~SocketWatch();

  // Of all sockets of the process that listen.
  static std::vector<uint64_t> listening();
  // UCX's listeners: they were not there `before`, and UCX's address names their ports. From then on nobody gets in.
  void find_listeners(const std::vector<uint64_t>& before, std::span<const std::byte> ucx_address);
  // Where this rank listens, for the other ranks. Begins with its length.
  std::vector<std::byte> doors() const;
  static size_t bytes_of(std::span<const std::byte> doors);  // 0: these are none
  void set_doors(int rank, std::span<const std::byte> doors);
  // All ranks' doors are known: opens this rank's to them. Before any of them connects.
  void open_doors();

  // UCX calls connect() for this socket, in a thread that works for `working`, or one of UCX's own: gives it the port.
  static thread_local SocketWatch* working;
  static void connects(int descriptor, const sockaddr* to);
  // UCX asks whether its connect() for this socket has succeeded, and it has not. True: a rank is refused with that,
  // and UCX shall believe in all its connections to it, although nothing gets through.
  static bool refuse(int descriptor);
  // The socket leads to a rank that is refused.
  static bool is_refused(int descriptor);
  // A refused rank connects again: UCX must not see that, as it still waits for its own connection.
  static bool is_of_refused(int accepted);
  bool any_refused() const { return news_of_refusals_.load(std::memory_order_relaxed); }
  // Since the last call.
  std::vector<int> refused_ranks();
  // Which connection was not made, and why; empty: the rank is not refused.
  std::string refusal_of(int rank);
  // Takes new sockets of UCX under watch.
  void adopt();
  // Shuts down all that lead to this rank. False: none is known.
  bool cut(int rank);
  // Takes new sockets, too. Ranks to which a connection is silent; one that leads to nobody knows whom is shut down at
  // once.
  std::vector<int> silent_ranks(Time now);
  // Why, for the report of its loss; empty: its host is not known to be silent. `timed_out`: the kernel has found that.
  std::string silence_of(int rank, bool timed_out) const;
  const std::string& doors_text() const { return doors_text_; }

 private:
  struct Socket {
    uint64_t identity = 0;
    int rank = -1;  // -1: accepted, not known from whom
    Host peer{};
    Time since = 0;             // first seen
    Time unanswered_since = 0;  // 0: nothing is
  };
  struct Door {
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
  void turn_strangers_out() const;
  const Socket* find_locked(int descriptor) const;
  void refuse_locked(int rank, const Host& peer, int error);
  static void before_fork();
  static void after_fork();
  static void in_child();

  const Time patience_;
  std::mutex mutex_;
  UniqueFd reservation_;               // holds own_.source
  std::map<int, uint64_t> listeners_;  // descriptor -> identity
  Door own_;
  std::vector<Door> by_rank_;
  std::map<TcpAddress, int> ranks_;  // by where they listen, and from where they have connected
  std::map<int, Socket> sockets_;    // by descriptor
  std::map<int, Time> connecting_;   // rank -> since when, in vain
  std::vector<Host> silent_hosts_;
  std::map<int, std::string> refusals_;  // by rank
  std::vector<int> newly_refused_;
  std::atomic<bool> news_of_refusals_ = false;
  std::string doors_text_ = "everybody who reaches the devices above";
};

}  // namespace ibcoll::ucx
