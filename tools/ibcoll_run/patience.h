// SPDX-License-Identifier: BSD-3-Clause
// For how many seconds the launcher and its agents wait for others. Tests shorten all of these waits by
// IBCOLL_RUN_PATIENCE=SECONDS.
#pragma once

#include "runtime/base/status.h"

namespace ibcoll::run {

struct Patience {
  // Until the other end that is not heard counts as gone. An agent is never stopped by intent, and one that gets no
  // processor for so long is as good as gone.
  double with_agent = 30;
  // A launcher may be: by a debugger or SIGSTOP, or while it writes to a file server that has a break. As long as, by
  // default, a collective waits for its ranks.
  double with_launcher = 600;
  // Who connects to the rendezvous proves at once that it is a rank.
  double with_stranger = 10;
  // After SIGKILL and with no output, before a host is given up.
  double with_the_end = 3;
  double with_name_server = 5;
  double with_file = 10;
  // After a signal that asks it to end, while it does not take that.
  double with_itself = 5;
};

// INVALID_ARGUMENT: the variable is no number of seconds.
Result<Patience> chosen_patience();
// The same, or what is the default where the variable is wrong; chosen_patience() says so later.
Patience patience_or_default();

}  // namespace ibcoll::run
