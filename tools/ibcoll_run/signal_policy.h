// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <optional>

namespace ibcoll::run {

// Decides what the launcher does with a signal it gets.
class SignalPolicy {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kTwice{5};  // a second Ctrl-C within this time kills

  enum class Action {
    kForward,  // to all ranks
    kKill,     // SIGKILL to all ranks
    kAsk,      // have the ranks print what their collectives wait for
    kSuspend,  // stop the ranks, then the launcher
  };

  Action decide(int signal, Clock::time_point now);

 private:
  std::optional<Clock::time_point> last_request_to_end_;
};

}  // namespace ibcoll::run
