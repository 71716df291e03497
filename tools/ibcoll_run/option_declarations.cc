// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/option_declarations.h"

#include "runtime/base/network_modules.h"
#include "tools/ibcoll_run/command_words.h"

namespace ibcoll::run {
namespace {

// Most likely the value of a variable that is not set: not the same as an option that is not given.
const CLI::Validator not_blank(
    [](const std::string& text) {
      return text.find_first_not_of(" \t\r\n") == std::string::npos ? std::string(kNoValue) : std::string();
    },
    "");

// Checks the value of a flag, which is "true" where none is given.
const CLI::Validator number_or_none(
    [](const std::string& text) {
      const bool digits = text.size() < 8 && text.find_first_not_of("0123456789") == std::string::npos;
      return digits || text == "true" ? std::string() : "'" + text + "' is not a number of ranks";
    },
    "");

// The values that IBCOLL_NET may have.
std::vector<std::string> networks() {
  std::vector<std::string> names = {"auto"};
  for (const NetworkModule& module : kNetworkModules) names.emplace_back(module.name);
  names.emplace_back("shm");
  return names;
}

void declare_placement(CLI::App& app, Options& options) {
  const auto some = CLI::Range(1, 1 << 20);
  auto* nodes =
      app.add_option("--nodes", options.nodes, "emulate K nodes on this machine: shared memory only within one")
          ->type_name("K")
          ->check(some);
  auto* host = app.add_option("-H,--host", options.hosts, "hosts and their ranks: h1:4,h2:4; h1,h1 is h1:2")
                   ->type_name("HOSTS")
                   ->check(not_blank);
  auto* hostfile =
      app.add_option("--hostfile", options.hostfile, "hosts from a file")->type_name("FILE")->check(not_blank);
  host->excludes(hostfile)->excludes(nodes);
  hostfile->excludes(nodes);
  app.add_option("-N,--per-node", options.per_node, "ranks on each host, or on each emulated node")
      ->type_name("RANKS")
      ->check(some);
  app.add_option("--map-by", options.map_by, "slot: fill one host after the other; node: each rank on the next host")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"slot", "node"}));
  app.add_flag("--oversubscribe", options.oversubscribe, "let hosts take more ranks than they have slots");
}

void declare_binding(CLI::App& app, Options& options) {
  auto* bind = app.add_option("--bind-to", options.bind_to,
                              "default: to cores, where the ranks fill the machine; else not at all")
                   ->type_name("WHAT")
                   ->check(CLI::IsMember({"none", "core", "numa"}));
  app.add_flag_callback(
         "--no-bind", [&options] { options.bind_to = "none"; }, "the same as --bind-to none")
      ->excludes(bind);
  app.add_option("--cpus-per-rank", options.cpus_per_rank, "bind each rank to this many cores")
      ->type_name("CORES")
      ->check(CLI::Range(1, 1 << 20));
  app.add_flag("--report-bindings", options.report_bindings, "say to which cores each rank is bound");
}

}  // namespace

void declare(CLI::App& app, ProgramOptions& options) {
  app.add_option("-n", options.ranks, "ranks; default: one for each core, or what the hosts offer")
      ->type_name("RANKS")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--wdir", options.folder, "working directory of the ranks; default: this one")
      ->type_name("FOLDER")
      ->check(not_blank);
  app.add_option("-x", options.exports,
                 "set a variable for the ranks of this program, or pass on one of this environment; may be repeated")
      ->type_name("NAME[=VALUE]")
      ->allow_extra_args(false);
}

void declare(CLI::App& app, Options& options) {
  declare_placement(app, options);
  declare_binding(app, options);
  app.add_option("--rsh", options.rsh,
                 "run commands on hosts by CMD HOST COMMAND...; default: ssh -x -o BatchMode=yes -o ConnectTimeout=10")
      ->type_name("CMD")
      ->check(not_blank);
  app.add_option("--net", options.net, "transport between nodes (sets IBCOLL_NET)")
      ->type_name("NAME")
      ->check(CLI::IsMember(networks()));
  app.add_flag("--rdma-in-memory", options.rdma_in_memory,
               "give the ranks an RDMA device in this machine's memory, and --net verbs where no other is named");
  app.add_option("--timeout", options.timeout, "end the job after this time, with exit code 124")
      ->type_name("SECONDS")
      ->check([](const std::string& text) { return parse_seconds(text).status().text(); });
  app.add_flag_function(
         "--keep-going", [&options](int64_t least) { options.keep_going = static_cast<int>(least); },
         "let the others go on when a rank dies; --keep-going=MIN: while MIN ranks live")
      ->check(number_or_none);
  app.add_flag("--tag-output", options.tag_output, "put [RANK] before every line of output");
  auto* pty = app.add_flag_callback(
      "--pty", [&options] { options.pty = true; },
      "give ranks a pseudo-terminal as standard output; default: where the launcher's is a terminal");
  app.add_flag_callback(
         "--no-pty", [&options] { options.pty = false; }, "give ranks pipes")
      ->excludes(pty);
  app.add_option("--address", options.address,
                 "address of this machine that all ranks reach; default: loopback here, by route for other hosts")
      ->type_name("ADDRESS")
      ->check(not_blank);
  app.add_flag("--allow-public", options.allow_public,
               "listen on addresses outside the private ranges too (sets IBCOLL_ALLOW_PUBLIC)");
  app.add_flag("--agent", options.agent)->group("");  // how a remote host is asked to run its ranks
}

}  // namespace ibcoll::run
