// SPDX-License-Identifier: BSD-3-Clause
// The completions of work requests: each completion goes to the peer, the connection and the message that its
// number names. An error is the peer's, the path's, or this rank's own.
#pragma once

#include "runtime/verbs/recovery.h"

namespace ibcoll::verbs {

class Completions {
 public:
  Completions(Local& local, WorkRequests& requests, Sender& sender, Connector& connector, Recovery& recovery)
      : local_(local), requests_(requests), sender_(sender), connector_(connector), recovery_(recovery) {}

  // Takes a batch; returns how many. Never waits.
  size_t poll();
  // Some drivers do not flush what is posted to a queue pair in the error state. Destroying it ends all it could still
  // do.
  void end_late_drains();
  // At most until its deadline.
  void wait_until_drained(Peer& peer);

 private:
  void on_completion(const ibv_wc& done);
  void on_error(Peer& peer, const ibv_wc& done, Work work, uint32_t request);
  void complete(Peer& peer, uint32_t request);
  void lose_device();

  Local& local_;
  WorkRequests& requests_;
  Sender& sender_;
  Connector& connector_;
  Recovery& recovery_;
};

}  // namespace ibcoll::verbs
