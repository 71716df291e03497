// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/launch.h"

#include <limits.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>

#include "runtime/base/config.h"
#include "tools/ibcoll_run/agent.h"
#include "tools/ibcoll_run/allocation.h"
#include "tools/ibcoll_run/before_start.h"
#include "tools/ibcoll_run/core_binding.h"
#include "tools/ibcoll_run/hosts.h"
#include "tools/ibcoll_run/listen_address.h"
#include "tools/ibcoll_run/placement.h"
#include "tools/ibcoll_run/pseudo_terminal.h"
#include "tools/ibcoll_run/rank_environment.h"
#include "tools/ibcoll_run/remote_host.h"

namespace ibcoll::run {
namespace {

std::string own_host_name() {
  char name[HOST_NAME_MAX + 1] = "localhost";
  ::gethostname(name, sizeof(name) - 1);
  return name;
}

// Of two names of which one has no domain, the first parts count: node lists of batch systems and gethostname() differ so.
bool same_name(const std::string& one, const std::string& other) {
  if (one == other) return true;
  const bool numeric = one.find_first_not_of("0123456789.:") == std::string::npos;
  const size_t dot = one.find('.');
  const size_t other_dot = other.find('.');
  if (numeric || (dot == std::string::npos) == (other_dot == std::string::npos)) return false;
  return one.substr(0, dot) == other.substr(0, other_dot);
}

bool is_this_machine(const std::string& host) {
  return host == "localhost" || host == "127.0.0.1" || host == "::1" || same_name(host, own_host_name());
}

// As --host, --hostfile or the batch system name them; empty: this machine alone.
Result<std::vector<HostEntry>> named_hosts(const Options& options) {
  if (!options.hosts.empty()) return parse_host_list(options.hosts);
  if (!options.hostfile.empty()) {
    const Result<std::string> text = read_text_file(options.hostfile);
    if (!text.ok()) return error(IBCOLL_ERR_INVALID_ARGUMENT, "--hostfile {}", text.status().text());
    return parse_hostfile(text.value(), options.hostfile);
  }
  if (options.nodes > 0) return std::vector<HostEntry>();
  Result<std::optional<Allocation>> found = allocation_here();
  if (!found.ok()) return found.status();
  if (!found.value()) return std::vector<HostEntry>();
  Allocation& allocation = *found.value();
  std::fprintf(stderr, "ibcoll_run: hosts of the %s: %s\n", allocation.source.c_str(),
               host_list(allocation.hosts).c_str());
  return std::move(allocation.hosts);
}

// Where nothing says how many: a rank for each core, or for so many cores as each is to have, and one for each emulated node
// where there are more of these.
int default_ranks(const Options& options) {
  return std::max({1, CoreBinding::core_count() / options.cpus_per_rank.value_or(1), options.nodes});
}

Result<std::vector<HostRanks>> place(const Options& options) {
  Result<std::vector<HostEntry>> hosts = named_hosts(options);
  if (!hosts.ok()) return hosts.status();
  PlacementRules rules{options.ranks(), options.per_node, options.map_by == "node", options.oversubscribe};
  if (!hosts->empty()) return place_on_hosts(hosts.value(), rules);
  if (options.nodes > 0 && options.per_node) {
    const int64_t ranks = int64_t{options.nodes} * *options.per_node;
    if (ranks > rendezvous::kMaxRanks || rules.ranks.value_or(static_cast<int>(ranks)) != ranks) {
      return error(IBCOLL_ERR_INVALID_ARGUMENT, "--nodes {} with {} ranks each (-N) are {} ranks; leave -n out",
                   options.nodes, *options.per_node, ranks);
    }
    rules.ranks = static_cast<int>(ranks);
    rules.per_host.reset();
  }
  if (!rules.ranks && !rules.per_host) rules.ranks = default_ranks(options);
  return place_on_hosts({{own_host_name(), {}, {}}}, rules);
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
  const std::vector<std::string> environment = base_environment_of_rank(job, job.programs.front(), {});
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

Result<std::vector<RankProgram>> programs_of(const Options& options) {
  std::vector<RankProgram> programs;
  for (const ProgramOptions& one : options.programs) {
    Result<std::vector<std::string>> exported = exported_variables(one.exports);
    if (!exported.ok()) return exported.status();
    const std::string folder = one.folder.empty() ? "" : std::filesystem::absolute(one.folder).lexically_normal();
    programs.push_back({one.program, std::move(exported.value()), folder});
  }
  return programs;
}

// Which program each rank of the job runs.
std::vector<int> program_of_ranks(const Options& options, int size) {
  if (options.programs.size() == 1) return std::vector<int>(static_cast<size_t>(size), 0);
  std::vector<int> programs;
  for (size_t i = 0; i < options.programs.size(); ++i)
    programs.insert(programs.end(), static_cast<size_t>(*options.programs[i].ranks), static_cast<int>(i));
  return programs;
}

Binding binding_of(const Options& options) {
  const std::map<std::string, Binding::To> choices = {{"", Binding::To::kAuto},
                                                      {"none", Binding::To::kNone},
                                                      {"core", Binding::To::kCore},
                                                      {"numa", Binding::To::kNuma}};
  return {choices.at(options.bind_to), options.cpus_per_rank.value_or(1), options.report_bindings};
}

Terminal terminal_of(const Options& options) {
  const winsize size = terminal_size(STDOUT_FILENO);
  Terminal terminal{Terminal::Use::kNo, size.ws_row, size.ws_col};
  if (options.pty ? *options.pty : ::isatty(STDOUT_FILENO) == 1)
    terminal.use = options.pty ? Terminal::Use::kYes : Terminal::Use::kIfThereAreSome;
  return terminal;
}

// Beside what each program gets.
std::vector<std::string> environment_of_job(const Options& options) {
  std::vector<std::string> variables;
  if (!options.net.empty()) variables.push_back("IBCOLL_NET=" + options.net);
  // A rank's standard error is a pipe, and yet a progress line has its place where this leads to a terminal.
  if (::isatty(STDERR_FILENO) == 1) variables.emplace_back("IBCOLL_RUN_TERMINAL=1");
  if (options.allow_public) variables.emplace_back("IBCOLL_ALLOW_PUBLIC=yes");
  return variables;
}

// All that the hosts have in common.
Result<HostJob> plan_common(const Options& options) {
  HostJob job;
  Result<std::vector<RankProgram>> programs = programs_of(options);
  if (!programs.ok()) return programs.status();
  job.programs = std::move(programs.value());
  job.environment = environment_of_job(options);
  job.binding = binding_of(options);
  job.terminal = terminal_of(options);
  const Result<Patience> patience = chosen_patience();
  if (!patience.ok()) return patience.status();
  job.patience = patience.value();
  std::error_code failed;
  job.folder = std::filesystem::current_path(failed);
  return job;
}

}  // namespace

Result<std::vector<HostJob>> plan_job(const Options& options) {
  if (!options.address.empty()) {
    // A mistake is one also where no other host needs the address. Whether it may be public is asked where it is used.
    const Result<SocketAddress> address = given_listen_address(options.address, true);
    if (!address.ok()) return address.status();
  }
  const Result<HostJob> common = plan_common(options);
  if (!common.ok()) return common.status();
  const Result<std::vector<HostRanks>> placed = place(options);
  if (!placed.ok()) return placed.status();
  size_t size = 0;
  for (const HostRanks& host : placed.value()) size += host.ranks.size();
  const std::vector<int> programs = program_of_ranks(options, static_cast<int>(size));
  std::vector<HostJob> jobs;
  for (const HostRanks& host : placed.value()) {
    HostJob job = common.value();
    job.host = host.host;
    job.remote = !is_this_machine(host.host);
    job.ranks = host.ranks;
    job.size = static_cast<int>(size);
    for (const int rank : host.ranks) job.program_of.push_back(programs[static_cast<size_t>(rank)]);
    if (job.remote) {
      const std::vector<std::string> settings = settings_of_this_process();
      job.environment.insert(job.environment.begin(), settings.begin(), settings.end());
    }
    jobs.push_back(std::move(job));
  }
  if (options.nodes > 0) {
    Result<std::vector<std::string>> nodes =
        emulated_nodes(static_cast<int>(size), options.nodes, options.map_by == "node");
    if (!nodes.ok()) return nodes.status();
    jobs.front().nodes = std::move(nodes.value());
  }
  return jobs;
}

Result<std::unique_ptr<RendezvousServer>> open_rendezvous(EventLoop& loop, const Options& options,
                                                          std::vector<HostJob>& jobs) {
  rendezvous::Secret secret;
  if (Status status = rendezvous::fill_random(secret); !status.ok()) return status;
  std::vector<std::string> hosts(static_cast<size_t>(jobs.front().size));
  for (const HostJob& job : jobs)
    for (const int rank : job.ranks) hosts[static_cast<size_t>(rank)] = job.host;
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
