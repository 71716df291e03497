// SPDX-License-Identifier: BSD-3-Clause
// Connections that break, and peers that are lost. A broken connection drains: its last completions are awaited. Then
// it is made anew, or its peer is given up and reported.
#pragma once

#include <string_view>

#include "runtime/verbs/connector.h"

namespace ibcoll::verbs {

constexpr const char* kNoText = "out of memory";      // where the text of a failure finds none
constexpr Time kDrainTimeout = 1'000 * kMillisecond;  // for the last completions of a queue pair in the error state

class Recovery {
 public:
  Recovery(Local& local, WorkRequests& requests, Exposures& exposures, Sender& sender, Connector& connector)
      : local_(local), requests_(requests), exposures_(exposures), sender_(sender), connector_(connector) {}

  // These throw nothing: they run in a poll of the completion queue, which has taken other completions as well.

  // Nothing is written any more. The next connection has at least this epoch. No effect on one that is broken already.
  void break_connection(Peer& peer, uint32_t next_epoch);
  // Breaks the connection, to make another. Too many in a row: the peer fails.
  void connect_anew(Peer& peer);
  // The device has used up its retries. True: another connection is tried. False: the peer is to fail.
  bool try_again(Peer& peer);
  // The last completion of a broken connection has arrived, or its deadline is over.
  void drained(Peer& peer);
  // Peers whose connection drains.
  size_t draining() const { return draining_; }

  // No effect on a peer that is lost already.
  void fail(Peer& peer, std::string_view why);
  // This rank cannot reach the peer, for a reason of its own that no other rank knows better. So it is reported before
  // the connection has drained.
  void lack(Peer& peer, const Status& what);
  // Takes what the device has reported. True: its end, and all peers are lost.
  bool look_at_device();
  // One that is lost; once.
  void report(Peer& peer);

  uint64_t failed_peers() const { return failed_peers_; }

 private:
  static bool may_reconnect(Peer& peer);
  void lose(Peer& peer);
  void give_up(Peer& peer);

  Local& local_;
  WorkRequests& requests_;
  Exposures& exposures_;
  Sender& sender_;
  Connector& connector_;
  size_t draining_ = 0;
  uint64_t failed_peers_ = 0;
};

}  // namespace ibcoll::verbs
