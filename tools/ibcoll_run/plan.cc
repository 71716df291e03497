// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/plan.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "tools/ibcoll_run/job_hosts.h"
#include "tools/ibcoll_run/listen_address.h"
#include "tools/terminal.h"

namespace ibcoll::run {
namespace {

// The settings that a remote host does not have: it knows nothing of the shell the job is started from.
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

// In addition to the variables of each program.
std::vector<std::string> environment_of_job(const Options& options) {
  std::vector<std::string> variables;
  if (!options.net.empty())
    variables.push_back("IBCOLL_NET=" + options.net);
  else if (options.rdma_in_memory && std::getenv("IBCOLL_NET") == nullptr)
    variables.emplace_back("IBCOLL_NET=verbs");
  // Registration replaces pages: what another process writes to one meanwhile, by a copy of the kernel, would be lost.
  if (options.rdma_in_memory && std::getenv("IBCOLL_SINGLE_COPY") == nullptr)
    variables.emplace_back("IBCOLL_SINGLE_COPY=off");
  // A rank's standard error is a pipe. Progress lines still make sense where the launcher's leads to a terminal. The
  // value is the number of columns beside the tag of rank 0.
  if (overwrites_lines(STDERR_FILENO)) {
    const int tag = options.tag_output ? static_cast<int>(std::string_view("[0] ").size()) : 0;
    const int columns = std::max(1, terminal_size(STDERR_FILENO).ws_col - tag);
    variables.push_back(fmt::format("IBCOLL_RUN_TERMINAL={}", columns));
  }
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
  const Result<Timeouts> timeouts = chosen_timeouts(options.keep_going.has_value());
  if (!timeouts.ok()) return timeouts.status();
  job.timeouts = timeouts.value();
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
  const Result<std::vector<HostRanks>> placed = place_job(options);
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

}  // namespace ibcoll::run
