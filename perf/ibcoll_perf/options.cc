// SPDX-License-Identifier: BSD-3-Clause
#include "perf/ibcoll_perf/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "perf/arrival/prepare.h"
#include "runtime/base/catalog.h"
#include "tools/options/help.h"
#include "tools/options/not_nan.h"
#include "tools/oracle/elements.h"

namespace ibcoll::perf {
namespace {

std::vector<std::string> collective_names() {
  std::vector<std::string> names;
  for (const Collective& row : kCatalog) names.emplace_back(row.name);
  names.emplace_back("all");
  return names;
}

std::vector<std::string> type_names() {
  std::vector<std::string> names;
  names.reserve(IBCOLL_OPAQUE);
  for (int i = 0; i < IBCOLL_OPAQUE; ++i) names.emplace_back(oracle::type_name(static_cast<ibcoll_type_t>(i)));
  return names;
}

// And a user's operation that is not commutative.
std::vector<std::string> operation_names() {
  std::vector<std::string> names;
  names.reserve(oracle::kOperations + 1);
  for (int i = 0; i < oracle::kOperations; ++i) names.emplace_back(oracle::operation_name(oracle::operation(i)));
  names.emplace_back(oracle::operation_name(oracle::composition()));
  return names;
}

// Position of a word that was checked to be in the list; the enumerations have the order of their lists.
template <typename Enumeration>
Enumeration chosen(const std::vector<std::string>& words, const std::string& word) {
  return static_cast<Enumeration>(std::find(words.begin(), words.end(), word) - words.begin());
}

// As the options have them.
struct Text {
  std::string collective, range = "1:1M", calls = "persistent", memory = "malloc", scheme = "auto", format = "table",
                          distribution, type, message_cost;
  uint64_t factor = 2;
  double seconds = 0.2;
};

const std::vector<std::string> kSchemes = {"auto", "copy", "zero_copy"};  // as ibcoll_scheme_t
const std::vector<std::string> kCalls(std::begin(kCallsNames), std::end(kCallsNames));
const std::vector<std::string> kFormats = {"table", "csv", "json"};  // as Options::Format

void describe_calls(CLI::App& app, Options& options, Text& text) {
  app.add_option("COLLECTIVE", text.collective, "What to measure, or all")
      ->check(CLI::IsMember(collective_names()))
      ->type_name("");
  app.add_option(
         "--algorithm", options.algorithm,
         "A name (see --list), auto: lowest predicted cost, or all (default: as IBCOLL_<COLLECTIVE> says, else auto)")
      ->check(CLI::Validator([](const std::string& name) { return name.empty() ? "a name is missing" : std::string(); },
                             ""));
  app.add_option("-m,--bytes", text.range,
                 "MIN:MAX or one size; bytes per block, in all where a rank has one block to send and to receive")
      ->capture_default_str();
  app.add_option("--factor", text.factor, "From one size to the next")
      ->check(CLI::Range(uint64_t{2}, uint64_t{1} << 32))
      ->capture_default_str();
  app.add_option("--distribution", text.distribution,
                 "Of irregular blocks around --bytes (default: mild, with --check ragged)")
      ->check(CLI::IsMember(
          std::vector<std::string>(std::begin(oracle::kDistributions), std::end(oracle::kDistributions))));
  app.add_option("--type", text.type, "Of reductions (default: the widest that divides the size)")
      ->check(CLI::IsMember(type_names()));
  app.add_option("--op", options.op, "Of reductions; composition: an operation of the user, not commutative")
      ->check(CLI::IsMember(operation_names()))
      ->capture_default_str();
  app.add_option("--root", options.root, "Where a collective has one")->check(CLI::Range(0, (1 << 20) - 1));
  app.add_flag("--in-place", options.in_place, "IBCOLL_IN_PLACE on the ranks that may give it");
  app.add_option("--calls", text.calls,
                 "persistent: one request; blocking, oneshot (nonblocking): each call has other buffers")
      ->check(CLI::IsMember(kCalls))
      ->capture_default_str();
  app.add_option("--memory", text.memory, "Where the buffers come from; ibcoll: ibcoll_mem_alloc")
      ->check(CLI::IsMember({"malloc", "ibcoll"}))
      ->capture_default_str();
  app.add_option("--scheme", text.scheme,
                 "Of messages, copy: landing slots; zero_copy: straight into the receive buffer")
      ->check(CLI::IsMember(kSchemes))
      ->capture_default_str();
}

void describe_loop(CLI::App& app, Options& options, Text& text) {
  app.add_option("-i,--iterations", options.plan.iterations, "Timed calls per row (default: as --seconds says)")
      ->check(CLI::Range(uint64_t{1}, uint64_t{100000000}));
  app.add_option("--seconds", text.seconds, "Time for the timed calls of a row, of which there are 5 to 20000")
      ->check(CLI::Range(1e-6, 86400.0))
      ->check(not_nan())
      ->capture_default_str();
  app.add_option("-x,--warmup", options.plan.warmup,
                 "Calls before the timed ones (default: as many as fill a quarter of --seconds)")
      ->check(CLI::Range(int64_t{0}, int64_t{100000000}));
  app.add_flag("--check", options.check,
               "Verify every byte after one, two and three calls in turn; times then include waiting for it");
}

void describe_arrival(CLI::App& app, Options& options, Text& text) {
  app.add_option("--arrival", options.arrival,
                 "Barrier and delays before each call: none, random:MIF, late:PERCENT:MIF or file:TRACE");
  app.add_option("--message-cost", text.message_cost,
                 "With --arrival, ALPHA:BETA: a message of m bytes takes ALPHA + BETA m us (default: measured)");
}

void describe_output(CLI::App& app, Options& options, Text& text) {
  app.add_flag("-f,--full", options.full, "Half (p50) and nine in ten calls (p90) as well");
  app.add_option("--format", text.format, "How to print")->check(CLI::IsMember(kFormats))->capture_default_str();
  app.add_option("--output", options.output, "Write to this file instead of standard output");
  app.add_flag("--list", options.list, "List collectives and algorithms");
  app.set_version_flag("--version", ibcoll_version_string());
}

void read(const Text& text, Options& options) {
  if (text.collective.empty()) throw CLI::RequiredError("COLLECTIVE");
  for (const Collective& row : kCatalog)
    if (text.collective == "all" || text.collective == row.name) options.collectives.push_back(row.id);
  options.scheme = chosen<ibcoll_scheme_t>(kSchemes, text.scheme);
  options.calls = chosen<Calls>(kCalls, text.calls);
  options.format = chosen<Options::Format>(kFormats, text.format);
  if (!text.distribution.empty())
    options.distribution = static_cast<oracle::Distribution>(
        std::find(std::begin(oracle::kDistributions), std::end(oracle::kDistributions), text.distribution) -
        std::begin(oracle::kDistributions));
  if (!text.type.empty()) options.type = chosen<ibcoll_type_t>(type_names(), text.type);
  options.sizes = parse_sizes(text.range, text.factor);
  options.plan.budget_us = text.seconds * 1e6;
  options.library_memory = text.memory == "ibcoll";
  if (!options.arrival.empty()) {
    const std::string problem = parse_arrival(options.arrival, options.pattern);
    if (!problem.empty()) throw CLI::ValidationError("--arrival", problem);
  }
  if (!text.message_cost.empty()) {
    if (options.arrival.empty()) throw CLI::ValidationError("--message-cost", "it goes with --arrival");
    const std::string problem = parse_message_cost(text.message_cost, options.message_cost);
    if (!problem.empty()) throw CLI::ValidationError("--message-cost", problem);
  }
  check_algorithm(options);
  check_operation(options);
}

}  // namespace

std::optional<EarlyEnd> parse_options(int argc, const char* const* argv, Options& options) {
  CLI::App app("Times a collective over a range of sizes. Start it under ibcoll_run, or a launcher of PMIx or PMI.");
  give_help(app,
            "  ibcoll_run -n 4 ibcoll_perf allreduce\n"
            "  ibcoll_run -n 4 --nodes 2 ibcoll_perf alltoall --check\n"
            "  ibcoll_run -n 16 ibcoll_perf allgather --algorithm all --arrival random:1\n");
  Text text;
  describe_calls(app, options, text);
  describe_loop(app, options, text);
  describe_arrival(app, options, text);
  describe_output(app, options, text);
  app.callback([&] {
    if (!options.list) read(text, options);
  });
  return parse_command_line(app, "ibcoll_perf", argc, argv);
}

}  // namespace ibcoll::perf
