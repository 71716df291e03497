// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_sim/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>

#include "tools/ibcoll_sim/option_values.h"
#include "tools/ibcoll_sim/replay/peers.h"
#include "tools/options/help.h"
#include "tools/options/not_nan.h"

namespace ibcoll::simulator {
namespace {

const std::vector<std::string> kSchemes = {"auto", "copy", "zero_copy"};  // as ibcoll_scheme_t
const std::vector<std::string> kFormats = {"table", "csv", "json"};       // as Options::Format
const std::vector<std::string> kPorts = {"rank", "node"};                 // as sim::Ports

// As the options have them.
struct Text {
  std::string collective, algorithm = "auto", distribution = "regular", range = "1:1M", arrival = "none",
                          scheme = "auto";
  std::string ports = "rank", format = "table", eager = "8K", window = "256K";
  std::string scaled = "fixed";
  uint64_t factor = 4;
  double gap_us = -1, node_gap_us = -1;
};
const std::vector<std::string> kScaled = {"fixed", "per-rank", "per-job"};  // as ReplayOptions::Scaled

// Position of a word that was checked to be in the list.
template <typename Enumeration, typename Words>
Enumeration chosen(const Words& words, std::string_view word) {
  return static_cast<Enumeration>(std::find(std::begin(words), std::end(words), word) - std::begin(words));
}

void describe_call(CLI::App& app, Options& options, Text& text) {
  std::vector<std::string> names;
  for (const Collective& row : kCatalog) names.emplace_back(row.name);
  app.add_option("COLLECTIVE", text.collective, "What to simulate")->check(CLI::IsMember(names))->type_name("");
  app.add_option("--ranks", options.ranks, "How many")->check(CLI::Range(1, kMostRanks));
  app.add_option("--nodes", options.nodes,
                 "Nodes; each has a block of ranks, as equal as can be (default: one node for each rank)")
      ->check(CLI::Range(1, kMostRanks));
  app.add_option("--algorithm", text.algorithm,
                 "Names with parameters, as in ring,ring_pipelined:64K; auto: lowest predicted cost; or all; with "
                 "--replay auto, recorded, or COLLECTIVE=NAME,...")
      ->capture_default_str();
  app.add_option("-m,--bytes", text.range,
                 "MIN:MAX or one size; bytes per block, in all where a rank has one block to send and to receive")
      ->capture_default_str();
  app.add_option("--factor", text.factor, "From one size to the next")
      ->check(CLI::Range(uint64_t{2}, uint64_t{1} << 32))
      ->capture_default_str();
  app.add_option("--distribution", text.distribution, "Of irregular blocks around --bytes")
      ->check(
          CLI::IsMember(std::vector<std::string>(std::begin(oracle::kDistributions), std::end(oracle::kDistributions))))
      ->capture_default_str();
  app.add_option("--root", options.root, "Where a collective has one")->capture_default_str();
  app.add_option("--arrival", text.arrival, "When ranks start: none (all at once), late:RANK[,RANK...]:US, random:US")
      ->capture_default_str();
  app.add_option("--scheme", text.scheme, "Of messages, as IBCOLL_SCHEME")
      ->check(CLI::IsMember(kSchemes))
      ->capture_default_str();
  app.add_flag("--check", options.check, "Move the bytes and verify them all; for small sizes");
}

void describe_model(CLI::App& app, Options& options, Text& text) {
  const auto time = [&](const char* name, double& value, const char* about) {
    return app.add_option(name, value, about)->check(CLI::Range(0.0, kMostUs))->check(not_nan());
  };
  const auto speed = [&](const char* name, double& value, double least, const char* about) {
    app.add_option(name, value, about)->check(CLI::Range(least, 1000.0))->check(not_nan())->capture_default_str();
  };
  time("--alpha", options.alpha_us, "Start-up of a message between nodes, us")->capture_default_str();
  speed("--bandwidth", options.bandwidth, 0.001, "Between nodes, GB/s");
  time("--gap", text.gap_us, "More than its bytes that a message occupies the ports, us (default: alpha)");
  app.add_option("--ports", text.ports, "Whose they are: each rank's own, or shared by the ranks of a node")
      ->check(CLI::IsMember(kPorts))
      ->capture_default_str();
  time("--node-alpha", options.node_alpha_us, "The same within a node")->capture_default_str();
  speed("--node-bandwidth", options.node_bandwidth, 0.001, "Within a node, GB/s");
  time("--node-gap", text.node_gap_us, "Within a node, us (default: node-alpha)");
  speed("--copy-bandwidth", options.copy_bandwidth, 0.0,
        "Of copies and operations of a rank, GB/s; 0: they take no time");
  time("--flag", options.flag_us, "Until a flag in a node's memory is seen, us")->capture_default_str();
  app.add_option("--eager", text.eager, "As IBCOLL_EAGER_BYTES")->capture_default_str();
  app.add_option("--window", text.window, "As IBCOLL_SHM_SLOT_BYTES")->capture_default_str();
}

void describe_replay(CLI::App& app, ReplayOptions& replay, Text& text) {
  app.add_option("--replay", replay.path,
                 "Instead of COLLECTIVE: the traces of a program (FILE or folder, or an OTF2 archive traces.otf2)")
      ->type_name("TRACE");
  app.add_option("--ranks-per-node", replay.ranks_per_node, "In a replay: blocks of so many ranks share a node")
      ->check(CLI::Range(1, kMostRanks));
  app.add_option("--speedup", replay.speedup, "In a replay: of computation")
      ->check(CLI::Range(1e-3, 1e6))
      ->check(not_nan());
  app.add_flag("--together", replay.together, "In a replay: all ranks compute equally long before a call");
  std::vector<std::string> peers = known_peers();
  peers.insert(peers.begin(), "none");
  app.add_option("--peer", replay.peer, "In a replay: also the default algorithms of this library")
      ->check(CLI::IsMember(peers))
      ->capture_default_str();
  app.add_option("--scale-bytes", text.scaled,
                 "In a replay with more --ranks than the trace has, what stays: a block, all blocks of a rank, or the "
                 "data of the job")
      ->check(CLI::IsMember(kScaled))
      ->capture_default_str();
  app.add_option("--seed", replay.seed, "Of the order in which added ranks compute")->capture_default_str();
  app.add_option("--html", replay.html, "In a replay: write a page with both time lines to this file");
  app.add_flag("--partial", replay.partial, "In a replay: use what can be read of a trace that is damaged");
}

void describe_output(CLI::App& app, Options& options, Text& text) {
  app.add_option("--format", text.format, "How to print")->check(CLI::IsMember(kFormats))->capture_default_str();
  app.add_option("--trace", options.trace, "Write what every rank does when to this file, a JSON object a line");
  app.set_version_flag("--version", ibcoll_version_string());
}

constexpr const char* kOfCalls[] = {"--bytes", "--factor",  "--distribution", "--root",
                                    "--check", "--arrival", "--scheme",       "--trace"};
constexpr const char* kOfReplays[] = {"--ranks-per-node", "--speedup", "--together", "--peer",
                                      "--scale-bytes",    "--seed",    "--html",     "--partial"};

// An option without effect is a mistake.
template <size_t kCount>
void refuse(const CLI::App& app, const char* const (&options)[kCount], const char* why) {
  for (const char* const option : options)
    if (app.get_option(option)->count() > 0) throw CLI::ValidationError(option, why);
}

// Reads the options that a replay and a simulated call have in common.
void read_model(const Text& text, Options& options) {
  options.ports = chosen<sim::Ports>(kPorts, text.ports);
  options.gap_us = text.gap_us < 0 ? options.alpha_us : text.gap_us;
  options.node_gap_us = text.node_gap_us < 0 ? options.node_alpha_us : text.node_gap_us;
  options.eager_bytes = parse_one_size("--eager", text.eager, 0, 1 << 20);
  options.window_bytes = parse_one_size("--window", text.window, 4096, 4 << 20) / 64 * 64;
  options.format = chosen<Options::Format>(kFormats, text.format);
}

void read_replay(const CLI::App& app, const Text& text, Options& options) {
  ReplayOptions& replay = options.replay;
  if (!text.collective.empty())
    throw CLI::ValidationError("--replay", "takes its calls from the traces: no COLLECTIVE beside it");
  refuse(app, kOfCalls, "is of a single collective, and has no effect with --replay");
  for (const char* const option :
       {"--ranks", "--nodes", "--ranks-per-node", "--alpha", "--bandwidth", "--gap", "--ports", "--node-alpha",
        "--node-bandwidth", "--node-gap", "--copy-bandwidth", "--flag"})
    if (app.get_option(option)->count() > 0) replay.given.insert(option);
  replay.nodes = options.nodes;
  replay.algorithm = text.algorithm;
  replay.scaled = chosen<ReplayOptions::Scaled>(kScaled, text.scaled);
}

void read_call(const CLI::App& app, const Text& text, Options& options) {
  if (text.collective.empty()) throw CLI::RequiredError("COLLECTIVE");
  refuse(app, kOfReplays, "is of a replay, and has no effect without --replay");
  if (options.ranks == 0) throw CLI::RequiredError("--ranks");
  for (const Collective& row : kCatalog)
    if (text.collective == row.name) options.collective = &row;
  if (options.nodes == 0) options.nodes = options.ranks;
  if (options.nodes > options.ranks)
    throw CLI::ValidationError("--nodes", fmt::format("{} nodes are more than {} ranks: each node has at least one",
                                                      options.nodes, options.ranks));
  if (options.root < 0 || options.root >= options.ranks)
    throw CLI::ValidationError("--root", fmt::format("{}: ranks are 0 to {}", options.root, options.ranks - 1));
  options.algorithms = words_of(text.algorithm, ',');
  for (const std::string& name : options.algorithms) {
    if (name.empty()) throw CLI::ValidationError("--algorithm", fmt::format("'{}': a name is missing", text.algorithm));
    if (options.algorithms.size() > 1 && (name == "all" || name == "auto"))
      throw CLI::ValidationError("--algorithm", fmt::format("'{}' stands alone, not in a list", name));
  }
  options.sizes = options.collective->moves_data() ? parse_sizes(text.range, text.factor) : std::vector<uint64_t>{0};
  options.distribution = chosen<oracle::Distribution>(oracle::kDistributions, text.distribution);
  options.scheme = chosen<ibcoll_scheme_t>(kSchemes, text.scheme);
  options.arrival = parse_arrival(text.arrival, options.ranks);
}

}  // namespace

std::optional<EarlyEnd> parse_options(int argc, const char* const* argv, Options& options) {
  CLI::App app("Runs a collective's algorithms over a modelled network and prints the times that they take there.");
  give_help(app,
            "  ibcoll_sim allgather --ranks 64 --algorithm all\n"
            "  ibcoll_sim alltoall --ranks 1024 --nodes 64 --bytes 8:64K\n"
            "  ibcoll_sim allgather --ranks 16 --arrival late:3:500\n"
            "  ibcoll_sim --replay /tmp/t --nodes 256    a program's trace, elsewhere\n");
  Text text;
  describe_call(app, options, text);
  describe_model(app, options, text);
  describe_replay(app, options.replay, text);
  describe_output(app, options, text);
  app.callback([&] {
    read_model(text, options);
    if (options.replay.path.empty())
      read_call(app, text, options);
    else
      read_replay(app, text, options);
  });
  return parse_command_line(app, "ibcoll_sim", argc, argv);
}

}  // namespace ibcoll::simulator
