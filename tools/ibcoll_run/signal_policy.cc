// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/signal_policy.h"

#include <csignal>

namespace ibcoll::run {

SignalPolicy::Action SignalPolicy::decide(int signal, Clock::time_point now) {
  switch (signal) {
    case SIGINT:
    case SIGTERM: {
      const bool again = last_request_to_end_ && now - *last_request_to_end_ <= kTwice;
      last_request_to_end_ = now;
      return again ? Action::kKill : Action::kForward;
    }
    case SIGQUIT:
      return Action::kAsk;
    case SIGTSTP:
      return Action::kSuspend;
    default:
      return Action::kForward;
  }
}

}  // namespace ibcoll::run
