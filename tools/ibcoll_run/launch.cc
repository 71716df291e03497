// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/launch.h"

#include <unistd.h>

#include <map>

#include "runtime/base/config.h"
#include "tools/ibcoll_run/agent.h"
#include "tools/ibcoll_run/listen_address.h"
#include "tools/ibcoll_run/rank_environment.h"
#include "tools/ibcoll_run/remote_host.h"

namespace ibcoll::run {
namespace {

// --allow-public, or what a rank here would read for itself, the variables of -x included.
Result<bool> public_allowed(const HostJob& job, const Options& options) {
  if (options.allow_public) return true;
  const std::vector<std::string> environment = base_environment_of_rank(job, job.programs.front(), {});
  std::vector<const char*> entries;
  entries.reserve(environment.size() + 1);
  for (const std::string& entry : environment) entries.push_back(entry.c_str());
  entries.push_back(nullptr);
  const Result<Config> config = Config::load_from(entries.data());
  if (!config.ok()) return error(IBCOLL_ERR_INVALID_ARGUMENT, "{}", config.status().text());
  return config->boolean("IBCOLL_ALLOW_PUBLIC");
}

Result<SocketAddress> rendezvous_address(const HostJob& job, const Options& options) {
  if (!job.remote && options.address.empty()) return loopback_address();
  const Result<bool> allow_public = public_allowed(job, options);
  if (!allow_public.ok()) return allow_public.status();
  return options.address.empty() ? listen_address_for(job.host, allow_public.value())
                                 : given_listen_address(options.address, allow_public.value());
}

}  // namespace

Result<std::unique_ptr<RendezvousServer>> open_rendezvous(EventLoop& loop, const Options& options,
                                                          std::vector<HostJob>& jobs) {
  rendezvous::Secret secret;
  if (Status status = rendezvous::fill_random(secret); !status.ok()) return status;
  std::vector<std::string> hosts(static_cast<size_t>(jobs.front().size));
  for (const HostJob& job : jobs)
    for (const int rank : job.ranks) hosts[static_cast<size_t>(rank)] = job.host;
  auto server = std::make_unique<RendezvousServer>(loop, secret, std::move(hosts),
                                                   RendezvousServer::Seconds(jobs.front().timeouts.authentication),
                                                   options.keep_going.has_value());
  bool local = true;
  for (const HostJob& job : jobs) local = local && !job.remote;
  std::map<std::string, std::string> listening;  // address without port -> with port
  for (HostJob& job : jobs) {
    job.secret = secret;
    job.local = local;
    const Result<SocketAddress> address = rendezvous_address(job, options);
    if (!address.ok()) return address.status();
    std::string& text = listening[address.value().host_text()];
    if (text.empty()) {
      const Result<SocketAddress> bound = server->listen(address.value());
      if (!bound.ok()) return bound.status();
      text = bound.value().text();
    }
    job.address = text;
  }
  return server;
}

std::unique_ptr<Host> make_host(EventLoop& loop, HostJob job, HostEvents& events, const Options& options,
                                const ProcessDefaults& defaults) {
  if (job.remote) return std::make_unique<RemoteHost>(loop, std::move(job), events, options.rsh, defaults);
  const Agent::Input input = forwards_input(job) ? Agent::Input::kForward : Agent::Input::kInherit;
  return std::make_unique<Agent>(loop, std::move(job), events, defaults, input);
}

bool forwards_input(const HostJob& first) { return first.remote || ::isatty(STDIN_FILENO) == 1; }

}  // namespace ibcoll::run
