// SPDX-License-Identifier: BSD-3-Clause
// Signs of life: of the devices of peers, of greetings that are to be answered, and of the device and port of this rank.
#pragma once

#include <string>

#include "runtime/verbs/recovery.h"

namespace ibcoll::verbs {

class LivenessMonitor {
 public:
  LivenessMonitor(Local& local, WorkRequests& requests, Connector& connector, Recovery& recovery)
      : local_(local), requests_(requests), connector_(connector), recovery_(recovery) {}

  // Peers that are found dead fail.
  void check();

 private:
  void check_greeted(Time time);
  void check_silence(Peer& peer, Time time);
  void look_at_port(Time time);
  bool port_stays_down() const;
  std::string port_failure() const;

  Local& local_;
  WorkRequests& requests_;
  Connector& connector_;
  Recovery& recovery_;
  ibv_port_state port_state_ = IBV_PORT_ACTIVE;  // when it was last looked at; NOP: it did not say, for
  int port_error_ = 0;                           // this reason
  Time port_looked_at_ = 0, device_looked_at_ = 0;
  Time port_down_for_ = 0;  // at every look
};

}  // namespace ibcoll::verbs
