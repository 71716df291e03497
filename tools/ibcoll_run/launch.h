// SPDX-License-Identifier: BSD-3-Clause
// The place where the ranks of a job meet, and the runner of the ranks.
#pragma once

#include <memory>
#include <vector>

#include "tools/ibcoll_run/event_loop.h"
#include "tools/ibcoll_run/host.h"
#include "tools/ibcoll_run/options.h"
#include "tools/ibcoll_run/process_defaults.h"
#include "tools/ibcoll_run/rendezvous_server.h"

namespace ibcoll::run {

// Makes the job secret, listens where the hosts reach this machine, and puts secret and address into `jobs`.
Result<std::unique_ptr<RendezvousServer>> open_rendezvous(EventLoop& loop, const Options& options,
                                                          std::vector<HostJob>& jobs);

// An agent in this process, or behind the remote shell.
std::unique_ptr<Host> make_host(EventLoop& loop, HostJob job, HostEvents& events, const Options& options,
                                const ProcessDefaults& defaults);

// Whether rank 0 gets its standard input through the launcher; else it reads the launcher's itself. Not from a
// terminal: ranks are background processes to it, and would be stopped.
bool forwards_input(const HostJob& first);

}  // namespace ibcoll::run
