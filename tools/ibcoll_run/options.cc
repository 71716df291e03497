// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <span>

#include "runtime/include/ibcoll.h"

namespace ibcoll::run {
namespace {

constexpr const char* kDescription =
    "Starts PROGRAM as the ranks of one job, here or on other hosts, and stays until all have ended.\n"
    "A program that uses ibcoll finds its ranks by itself; any other program is started as often.";

constexpr const char* kFooter =
    "\nExamples\n"
    "  ibcoll_run -n 16 --nodes 4 ./program        16 ranks here, as if on 4 nodes of 4\n"
    "  ibcoll_run --host h1:4,h2:4 ./program       4 ranks each on h1 and h2, started through ssh\n"
    "  ibcoll_run -n 8 --tag-output -x DEBUG=1 ./program --option-of-the-program\n"
    "\n"
    "Hosts: the file has one host a line, `h1`, `h1:4` or `h1 slots=4`; # starts a comment. ibcoll_run must be at the "
    "same\n"
    "path on every host. Ranks on other hosts get the variables IBCOLL_*, UCX_* and those of -x; ranks here get all.\n"
    "Signals: INT, TERM, HUP, USR1, USR2 and WINCH go to every rank; a second Ctrl-C within 5 seconds kills. Ctrl-\\ "
    "has\n"
    "every rank print what its collectives wait for.\n"
    "Exit code: of the first rank that failed, 128+N when signal N killed it; 124 after --timeout, 127 when PROGRAM is "
    "not\n"
    "found, 126 when it cannot be executed, 2 for a mistake in the command line, 1 when the job could not be run.\n";

constexpr const char* kNoValue = "a value is missing";

// Most likely the value of a variable that is not set: not the same as an option that is not given.
const CLI::Validator not_blank(
    [](const std::string& text) {
      return text.find_first_not_of(" \t\r\n") == std::string::npos ? std::string(kNoValue) : std::string();
    },
    "");

void declare(CLI::App& app, Options& options) {
  app.add_option("-n", options.ranks, "ranks; default: one for each core, or what the hosts offer")
      ->type_name("RANKS")
      ->check(CLI::Range(1, 1 << 20));
  auto* nodes =
      app.add_option("--nodes", options.nodes, "emulate K nodes on this machine: shared memory only within one")
          ->type_name("K")
          ->check(CLI::Range(1, 1 << 20));
  auto* host =
      app.add_option("--host", options.hosts, "hosts and their ranks: h1:4,h2:4")->type_name("HOSTS")->check(not_blank);
  auto* hostfile =
      app.add_option("--hostfile", options.hostfile, "hosts from a file")->type_name("FILE")->check(not_blank);
  host->excludes(hostfile)->excludes(nodes);
  hostfile->excludes(nodes);
  app.add_option("--rsh", options.rsh,
                 "run commands on hosts by CMD HOST COMMAND...; default: ssh -x -o BatchMode=yes -o ConnectTimeout=10")
      ->type_name("CMD")
      ->check(not_blank);
  app.add_option("--net", options.net, "transport between nodes (sets IBCOLL_NET)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"auto", "ucx", "verbs", "shm"}));
  app.add_option("--timeout", options.timeout, "end the job after so long, with exit code 124")
      ->type_name("SECONDS")
      ->check([](const std::string& text) { return parse_seconds(text).status().text(); });
  app.add_flag("--tag-output", options.tag_output, "put [RANK] before every line of output");
  app.add_option("-x", options.exports, "set a variable for all ranks, or hand on one of here; may be repeated")
      ->type_name("NAME[=VALUE]")
      ->allow_extra_args(false);
  app.add_flag(
      "--no-bind", options.no_bind,
      "do not bind ranks to cores (done where there are enough cores, or where emulated nodes share them out)");
  app.add_option("--address", options.address, "address of this machine that the other hosts reach; default: by route")
      ->type_name("ADDRESS")
      ->check(not_blank);
  app.add_flag("--allow-public", options.allow_public,
               "listen on addresses outside the private ranges too (sets IBCOLL_ALLOW_PUBLIC)");
  app.add_flag("--agent", options.agent)->group("");  // how a remote host is asked to run its ranks
}

// CLI11 does not know of what comes after the options.
std::string help_of(const CLI::App& app) {
  constexpr std::string_view kUsage = "ibcoll_run [OPTIONS]";
  std::string help = app.help();
  const size_t at = help.find(kUsage);
  if (at != std::string::npos) help.insert(at + kUsage.size(), " PROGRAM [ARGUMENTS...]");
  return help;
}

}  // namespace

ParsedOptions parse_options(int argc, const char* const* argv) {
  ParsedOptions parsed;
  CLI::App app(kDescription, "ibcoll_run");
  app.prefix_command();  // options end at PROGRAM
  app.set_version_flag("--version", fmt::format("ibcoll_run {}.{}.{}", IBCOLL_VERSION_MAJOR, IBCOLL_VERSION_MINOR,
                                                IBCOLL_VERSION_PATCH));
  app.footer(kFooter);
  declare(app, parsed.options);
  const auto stop = [&](int code, std::string text) {
    parsed.stop = true;
    parsed.exit_code = code;
    parsed.text = std::move(text);
    return parsed;
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return stop(0, help_of(app));
  } catch (const CLI::CallForVersion& version) {
    return stop(0, std::string(version.what()) + "\n");
  } catch (const CLI::ParseError& mistake) {
    return stop(2, fmt::format("ibcoll_run: {}; see ibcoll_run --help\n", mistake.what()));
  }
  parsed.options.program = app.remaining();
  std::vector<std::string>& program = parsed.options.program;
  for (const std::string_view word : std::span(argv, static_cast<size_t>(argc) - program.size())) {
    // CLI11 would take the next word.
    if (word.starts_with("--") && word.ends_with('=')) {
      return stop(
          2, fmt::format("ibcoll_run: {}: {}; see ibcoll_run --help\n", word.substr(0, word.size() - 1), kNoValue));
    }
  }
  if (!program.empty() && program.front() == "--") program.erase(program.begin());
  if (parsed.options.agent) return parsed;
  if (program.empty()) return stop(2, "ibcoll_run: which PROGRAM? See ibcoll_run --help\n");
  if (program.front().starts_with('-')) {
    return stop(2, fmt::format("ibcoll_run: unknown option {}; see ibcoll_run --help\n", program.front()));
  }
  return parsed;
}

Result<double> parse_seconds(std::string_view text) {
  constexpr double kMost = 1e9;  // 31 years: within the range of every clock
  double seconds = 0;
  const auto [rest, reason] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  // NaN compares false.
  if (reason == std::errc() && rest == text.data() + text.size() && seconds > 0 && seconds <= kMost) return seconds;
  return error(IBCOLL_ERR_INVALID_ARGUMENT, "'{}' is not a number of seconds above 0, at most {}", text, kMost);
}

Result<std::vector<std::string>> exported_variables(const std::vector<std::string>& exports) {
  std::vector<std::string> variables;
  for (const std::string& text : exports) {
    const std::string name = text.substr(0, text.find('='));
    if (name.empty() || name.starts_with("IBCOLL_RUN_")) {
      return error(IBCOLL_ERR_INVALID_ARGUMENT, "-x {}: expected NAME or NAME=VALUE{}", text,
                   name.empty() ? "" : "; IBCOLL_RUN_* is ibcoll_run's own");
    }
    if (name.size() < text.size()) {
      variables.push_back(text);
      continue;
    }
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) {
      return error(IBCOLL_ERR_INVALID_ARGUMENT, "-x {}: not set here; write -x {}=VALUE", name, name);
    }
    variables.push_back(fmt::format("{}={}", name, value));
  }
  return variables;
}

}  // namespace ibcoll::run
