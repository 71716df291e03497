// SPDX-License-Identifier: BSD-3-Clause
// How many seconds the launcher and its agents wait for others. IBCOLL_RUN_TIMEOUTS=SECONDS, an upper limit of all of
// them, is for tests.
#pragma once

#include "runtime/base/status.h"

namespace ibcoll::run {

struct Timeouts {
  // Without a byte from an agent, its host counts as lost. Nobody stops an agent on purpose, and one that gets no
  // processor for this long cannot run ranks either.
  double agent_silence = 30;
  // Without a byte from the launcher, an agent ends its ranks. A launcher may be stopped, by a debugger or SIGSTOP, or
  // may hang in a write to a file server. By default a collective waits as long for its ranks.
  double launcher_silence = 600;
  // The same two with --keep-going. When the network between launcher and agent fails, the agent ends its ranks first,
  // and the launcher declares them dead later: no rank that counts as dead runs. Shorter limits keep this order.
  static constexpr double kAgentSilenceOfSurvivors = 15;
  static constexpr double kLauncherSilenceOfSurvivors = 10;
  // From connecting to the rendezvous until the client has proved that it is a rank.
  double authentication = 10;
  // After SIGKILL, without output, until a host that has not ended is given up.
  double after_kill = 3;
  double name_server = 5;
  double file = 10;
  // While a signal that ends this process is pending, until the watchdog ends the process.
  double pending_signal = 5;
};

// `keeps_going`: deaths do not end the job. INVALID_ARGUMENT: the variable is no number of seconds.
Result<Timeouts> chosen_timeouts(bool keeps_going);
// The same, but the defaults where the variable is wrong: chosen_timeouts() reports that later.
Timeouts timeouts_or_default();

}  // namespace ibcoll::run
