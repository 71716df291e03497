// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/launch.h"

#include <limits.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "runtime/base/config.h"
#include "tools/ibcoll_run/agent.h"
#include "tools/ibcoll_run/core_binding.h"
#include "tools/ibcoll_run/hosts.h"
#include "tools/ibcoll_run/listen_address.h"
#include "tools/ibcoll_run/placement.h"
#include "tools/ibcoll_run/rank_environment.h"
#include "tools/ibcoll_run/remote_host.h"

namespace ibcoll::run {
namespace {

std::string own_host_name() {
  char name[HOST_NAME_MAX + 1] = "localhost";
  ::gethostname(name, sizeof(name) - 1);
  return name;
}

bool is_this_machine(const std::string& host) {
  return host == "localhost" || host == "127.0.0.1" || host == "::1" || host == own_host_name();
}

Result<std::vector<HostEntry>> read_hosts(const Options& options) {
  if (options.hostfile.empty()) return parse_host_list(options.hosts);
  std::ifstream file(options.hostfile);
  std::ostringstream content;
  if (file) content << file.rdbuf();
  // An empty file sets failbit on `content`, and a folder opens but cannot be read.
  if (!file.is_open() || file.bad() || std::filesystem::is_directory(options.hostfile)) {
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "--hostfile {}: cannot be read: {}", options.hostfile,
                 file.is_open() ? "not a file" : std::strerror(errno));
  }
  return parse_hostfile(content.str(), options.hostfile);
}

Result<std::vector<HostRanks>> place(const Options& options) {
  if (!options.hosts.empty() || !options.hostfile.empty()) {
    const Result<std::vector<HostEntry>> hosts = read_hosts(options);
    if (!hosts.ok()) return hosts.status();
    return place_on_hosts(hosts.value(), options.ranks);
  }
  // More emulated nodes than cores and no -n: one rank for each node.
  const int ranks = options.ranks ? *options.ranks : std::max(CoreBinding::core_count(), options.nodes);
  return std::vector<HostRanks>{{own_host_name(), 0, ranks}};
}

// What a remote host does not have: it knows nothing of the shell the job is started from.
std::vector<std::string> settings_of_this_process() {
  std::vector<std::string> settings;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.starts_with("UCX_") || (text.starts_with("IBCOLL_") && !text.starts_with("IBCOLL_RUN_"))) {
      settings.emplace_back(text);
    }
  }
  return settings;
}

// IBCOLL_RUN_PATIENCE=SECONDS is for tests, which have less patience, and the same at both ends.
Result<Patience> chosen_patience() {
  Patience patience;
  const char* text = std::getenv("IBCOLL_RUN_PATIENCE");
  if (text == nullptr) return patience;
  const Result<double> seconds = parse_seconds(text);
  if (!seconds.ok()) return error(IBCOLL_ERR_INVALID_ARGUMENT, "IBCOLL_RUN_PATIENCE: {}", seconds.status().text());
  patience.with_agent = patience.with_launcher = seconds.value();
  return patience;
}

// --allow-public, or what a rank here would read for itself, the variables of -x included.
Result<bool> public_allowed(const HostJob& job, const Options& options) {
  if (options.allow_public) return true;
  const std::vector<std::string> environment = base_environment_of_rank(job, -1);
  std::vector<const char*> entries;
  for (const std::string& entry : environment) entries.push_back(entry.c_str());
  entries.push_back(nullptr);
  const Result<Config> config = Config::load_from(entries.data());
  if (!config.ok()) return error(IBCOLL_ERR_INVALID_ARGUMENT, "{}", config.status().text());
  return config->boolean("IBCOLL_ALLOW_PUBLIC");
}

Result<SocketAddress> rendezvous_address(const HostJob& job, const Options& options) {
  if (!job.remote) return numeric_address("127.0.0.1", 0);
  const Result<bool> allow_public = public_allowed(job, options);
  if (!allow_public.ok()) return allow_public.status();
  return options.address.empty() ? listen_address_for(job.host, allow_public.value())
                                 : given_listen_address(options.address, allow_public.value());
}

}  // namespace

Result<std::vector<HostJob>> plan_job(const Options& options) {
  if (!options.address.empty()) {
    // A mistake is one also where no other host needs the address. Whether it may be public is asked where it is used.
    const Result<SocketAddress> address = given_listen_address(options.address, true);
    if (!address.ok()) return address.status();
  }
  const Result<std::vector<HostRanks>> placed = place(options);
  if (!placed.ok()) return placed.status();
  Result<std::vector<std::string>> exported = exported_variables(options.exports);
  if (!exported.ok()) return exported.status();
  if (!options.net.empty()) exported->push_back("IBCOLL_NET=" + options.net);
  // A rank's standard error is a pipe, and yet a progress line has its place where this leads to a terminal.
  if (::isatty(STDERR_FILENO) == 1) exported->push_back("IBCOLL_RUN_TERMINAL=1");
  if (options.allow_public) exported->push_back("IBCOLL_ALLOW_PUBLIC=yes");
  const Result<Patience> patience = chosen_patience();
  if (!patience.ok()) return patience.status();
  std::error_code failed;
  const std::string folder = std::filesystem::current_path(failed);

  std::vector<HostJob> jobs;
  int size = 0;
  for (const HostRanks& ranks : placed.value()) size += ranks.count;
  for (const HostRanks& ranks : placed.value()) {
    HostJob job;
    job.host = ranks.host;
    job.remote = !is_this_machine(ranks.host);
    job.first_rank = ranks.first_rank;
    job.count = ranks.count;
    job.size = size;
    job.bind = !options.no_bind;
    job.patience = patience.value();
    job.folder = folder;
    job.program = options.program;
    if (job.remote) job.environment = settings_of_this_process();
    job.environment.insert(job.environment.end(), exported.value().begin(), exported.value().end());
    jobs.push_back(std::move(job));
  }
  if (options.nodes > 0) {
    Result<std::vector<std::string>> nodes = emulated_nodes(size, options.nodes);
    if (!nodes.ok()) return nodes.status();
    jobs.front().nodes = std::move(nodes.value());
  }
  return jobs;
}

Result<std::unique_ptr<RendezvousServer>> open_rendezvous(EventLoop& loop, const Options& options,
                                                          std::vector<HostJob>& jobs) {
  rendezvous::Secret secret;
  if (Status status = rendezvous::fill_random(secret); !status.ok()) return status;
  std::vector<std::string> hosts;
  for (const HostJob& job : jobs) hosts.insert(hosts.end(), static_cast<size_t>(job.count), job.host);
  auto server = std::make_unique<RendezvousServer>(loop, secret, std::move(hosts));
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
