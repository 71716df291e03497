// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/options.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <span>

#include "runtime/include/ibcoll.h"
#include "tools/ibcoll_run/command_words.h"
#include "tools/ibcoll_run/option_declarations.h"
#include "tools/options/help.h"

namespace ibcoll::run {
namespace {

constexpr const char* kDescription =
    "Starts PROGRAM as the ranks of one job, here or on other hosts, and stays until all have ended.\n"
    "A program that uses ibcoll finds its ranks by itself; any other program is started as often.";

constexpr const char* kExamples =
    "  ibcoll_run -n 16 --nodes 4 ./program       16 ranks here, as if on 4 nodes\n"
    "  ibcoll_run --host h1:4,h2:4 ./program      4 ranks each on two hosts, by ssh\n"
    "  ibcoll_run -n 8 --tag-output -x DEBUG=1 ./program --option-of-the-program\n"
    "  ibcoll_run -n 1 ./manager : -n 8 ./worker  two programs in one job\n";

constexpr const char* kFooter =
    "Hosts: the file has one host a line, `h1`, `h1:4` or `h1 slots=4 max_slots=8`, or one line for each rank; # "
    "starts "
    "a comment. Where nothing is named, those of the Slurm, PBS or LSF allocation are taken. ibcoll_run must be at the "
    "same path on every host. Ranks on other hosts get the variables IBCOLL_*, UCX_* and those of -x; ranks here get "
    "all.\n"
    "What users of mpirun and srun type is taken as well: -np, -ppn, -wdir, --ntasks, --cpus-per-task ...\n"
    "Signals: INT, TERM, HUP, USR1, USR2 and WINCH go to every rank; a second Ctrl-C within 5 seconds kills. Ctrl-\\, "
    "or QUIT, has every rank print what its collectives wait for. That is safe at any time: USR1 ends a rank that has "
    "no context.\n"
    "Exit code: of the first rank that failed, 128+N when signal N killed it; 124 after --timeout, 127 when PROGRAM is "
    "not found, 126 when it cannot be executed, 2 for a mistake in the command line, 1 when the job could not be "
    "run.\n";

// CLI11 does not know of what comes after the options.
std::string help_of(const CLI::App& app) {
  constexpr std::string_view kUsage = "ibcoll_run [OPTIONS]";
  std::string help = app.help();
  const size_t at = help.find(kUsage);
  if (at != std::string::npos) help.insert(at + kUsage.size(), " PROGRAM [ARGUMENTS...]");
  return help;
}

OptionKind kind_of(const CLI::App& app, const std::string& name) {
  const CLI::Option* option = app.get_option_no_throw(name);
  if (option == nullptr || !name.starts_with('-')) return OptionKind::kUnknown;
  return option->get_items_expected_min() > 0 ? OptionKind::kValue : OptionKind::kFlag;
}

// One part of the command line. Exceptions of CLI11; INVALID_ARGUMENT for what that does not find.
Status parse_part(const CommandPart& part, CLI::App& app) {
  app.allow_extras();
  app.parse(std::vector<std::string>(part.options.rbegin(), part.options.rend()));
  for (const std::string& word : part.options) {
    // CLI11 would take the next word.
    if (word.starts_with("--") && word.ends_with('=')) {
      return error(IBCOLL_ERR_INVALID_ARGUMENT, "{}: {}", word.substr(0, word.size() - 1), kNoValue);
    }
  }
  const std::vector<std::string> unknown = app.remaining();
  if (unknown.empty()) return {};
  return error(IBCOLL_ERR_INVALID_ARGUMENT, "unknown option {}{}", unknown.front(), did_you_mean(app, unknown.front()));
}

// The words after a ":".
Status parse_further_part(const CommandPart& part, const CLI::App& whole, ProgramOptions& options) {
  CLI::App app;
  app.set_help_flag();
  declare(app, options);
  Status status = parse_part(part, app);
  for (const std::string& word : app.remaining()) {
    if (kind_of(whole, word) == OptionKind::kUnknown) continue;
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "{} is for all programs: it stands before the first", word);
  }
  return status;
}

Status check_programs(Options& options) {
  for (const ProgramOptions& one : options.programs) {
    if (one.program.empty()) return error(IBCOLL_ERR_INVALID_ARGUMENT, "which PROGRAM?");
    if (options.programs.size() > 1 && !one.ranks) {
      return error(
          IBCOLL_ERR_INVALID_ARGUMENT,
          "{}: how many ranks? Each of several programs (separated by ':') needs -n; where ':' is an argument, "
          "put -- before the program",
          one.program.front());
    }
  }
  if (options.cpus_per_rank && options.bind_to.empty()) options.bind_to = "core";
  if (!options.cpus_per_rank || options.bind_to == "core") return {};
  return error(IBCOLL_ERR_INVALID_ARGUMENT, "--cpus-per-rank goes with --bind-to core, not with {}", options.bind_to);
}

Status parse_parts(const std::vector<CommandPart>& parts, CLI::App& app, Options& options) {
  for (size_t i = 0; i < parts.size(); ++i) {
    ProgramOptions& one = options.programs[i];
    Status status = i == 0 ? parse_part(parts[i], app) : parse_further_part(parts[i], app, one);
    if (!status.ok()) return status;
    one.program = parts[i].program;
  }
  return options.agent ? Status() : check_programs(options);
}

}  // namespace

std::optional<int> Options::ranks() const {
  std::optional<int> sum;
  for (const ProgramOptions& one : programs)
    if (one.ranks) sum = sum.value_or(0) + *one.ranks;
  return sum;
}

ParsedOptions parse_options(int argc, const char* const* argv) {
  ParsedOptions parsed;
  Options& options = parsed.options;
  CLI::App app(kDescription, "ibcoll_run");
  app.set_version_flag("--version", fmt::format("ibcoll_run {}.{}.{}", IBCOLL_VERSION_MAJOR, IBCOLL_VERSION_MINOR,
                                                IBCOLL_VERSION_PATCH));
  give_help(app, kExamples);
  app.footer(fill(kFooter));
  const std::span<const char* const> words(argv + 1, static_cast<size_t>(std::max(argc, 1)) - 1);
  options.programs.resize(1 + static_cast<size_t>(std::count(words.begin(), words.end(), std::string_view(":"))));
  declare(app, options.programs.front());
  declare(app, options);
  const auto stop = [&](int code, std::string text) {
    parsed.stop = true;
    parsed.exit_code = code;
    parsed.text = std::move(text);
    return parsed;
  };
  const auto mistake = [&](std::string_view what) {
    return stop(2, fmt::format("ibcoll_run: {}; see ibcoll_run --help\n", what));
  };
  const Result<std::vector<CommandPart>> parts =
      split_command(words, [&app](const std::string& name) { return kind_of(app, name); });
  if (!parts.ok()) return mistake(parts.status().text());
  options.programs.resize(parts.value().size());
  try {
    const Status status = parse_parts(parts.value(), app, options);
    if (!status.ok()) return mistake(status.text());
  } catch (const CLI::CallForHelp&) {
    return stop(0, help_of(app));
  } catch (const CLI::CallForVersion& version) {
    return stop(0, std::string(version.what()) + "\n");
  } catch (const CLI::ParseError& reason) {
    return mistake(reason.what());
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
