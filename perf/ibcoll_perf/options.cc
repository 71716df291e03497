// SPDX-License-Identifier: BSD-3-Clause
#include "perf/ibcoll_perf/options.h"
#include "runtime/base/catalog.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <sstream>

namespace ibcoll::perf {
namespace {

std::vector<std::string> collective_names() {
  std::vector<std::string> names;
  names.reserve(kCollectives);
  for (int i = 0; i < kCollectives; ++i) {
    names.emplace_back(ibcoll_collective_name(static_cast<ibcoll_collective_t>(i)));
  }
  return names;
}

// Position of a word that was checked to be in the list; the enumerations have the order of their lists.
template <typename Enumeration>
Enumeration chosen(const std::vector<std::string>& words, const std::string& word) {
  return static_cast<Enumeration>(std::find(words.begin(), words.end(), word) - words.begin());
}

bool read_size(const std::string& text, uint64_t& value) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  std::string digits = text;  // the validator replaces its argument by the number
  try {
    const CLI::AsSizeValue as_size(false);  // K is 1024
    if (!as_size(digits).empty()) return false;
  } catch (const CLI::ValidationError&) {  // above 64 bits with its suffix
    return false;
  }
  // The last: a number that is too large was read as the largest one.
  return CLI::detail::lexical_cast(digits, value) && std::to_string(value) == digits;
}

uint64_t parse_size(const std::string& text, const std::string& range) {
  uint64_t value = 0;
  if (read_size(text, value)) return value;
  throw CLI::ValidationError(
      "--bytes", fmt::format("'{}': MIN:MAX or one size is wanted, below 2^64, with suffixes K, M, G", range));
}

void check_algorithm(const Options& options) {
  if (options.algorithm.empty() || options.algorithm == "auto" || options.algorithm == "all") return;
  std::string known = "auto, all";
  for (int i = 0; const char* name = ibcoll_algorithm_name(options.collective, i); ++i) {
    if (options.algorithm == name) return;
    known += fmt::format(", {}", name);
  }
  throw CLI::ValidationError(
      "--algorithm", fmt::format("{} has no algorithm '{}'; there are {}", ibcoll_collective_name(options.collective),
                                 options.algorithm, known));
}

}  // namespace

std::vector<uint64_t> parse_sizes(const std::string& range, uint64_t factor) {
  const size_t colon = range.find(':');
  const uint64_t first = parse_size(range.substr(0, colon), range);
  const uint64_t last = colon == std::string::npos ? first : parse_size(range.substr(colon + 1), range);
  if (first > last) {
    throw CLI::ValidationError("--bytes", fmt::format("'{}': MIN must not be larger than MAX", range));
  }
  std::vector<uint64_t> sizes;
  for (uint64_t bytes = first; bytes < last;) {
    sizes.push_back(bytes);
    if (bytes > std::numeric_limits<uint64_t>::max() / factor) break;
    bytes = bytes == 0 ? 1 : bytes * factor;
  }
  sizes.push_back(last);
  return sizes;
}

namespace {

// NaN compares false, so that it is in every CLI::Range.
const CLI::Validator not_nan(
    [](const std::string& text) {
      double value = 0;
      return CLI::detail::lexical_cast(text, value) && std::isnan(value) ? fmt::format("'{}' is not a number", text)
                                                                         : std::string();
    },
    "");

// Sets up `app` so that its parse() fills `options`.
void describe_options(CLI::App& app, Options& options) {
  const std::vector<std::string> collectives = collective_names();
  const std::vector<std::string> schemes = {"auto", "copy", "zero_copy"};  // as ibcoll_scheme_t
  const std::vector<std::string> formats = {"table", "csv", "json"};       // as Options::Format
  struct Text {
    std::string collective, range = "1:1M", memory = "malloc", scheme = "auto", format = "table";
    uint64_t factor = 2;
    double seconds = 0.2;
  };
  const auto text = std::make_shared<Text>();
  app.add_option("COLLECTIVE", text->collective, "What to measure")->check(CLI::IsMember(collectives))->type_name("");
  app.add_option(
         "--algorithm", options.algorithm,
         "A name (see --list), auto: lowest predicted cost, or all (default: as IBCOLL_<COLLECTIVE> says, else auto)")
      ->check(CLI::Validator([](const std::string& name) { return name.empty() ? "a name is missing" : std::string(); },
                             ""));
  app.add_option("--bytes", text->range, "MIN:MAX or one size; bytes per block (bcast, allreduce: in all)")
      ->capture_default_str();
  app.add_option("--factor", text->factor, "From one size to the next")
      ->check(CLI::Range(uint64_t{2}, uint64_t{1} << 32))
      ->capture_default_str();
  app.add_option("--iterations", options.plan.iterations, "Timed calls per row (default: as --seconds says)")
      ->check(CLI::Range(uint64_t{1}, uint64_t{100000000}));
  app.add_option("--seconds", text->seconds, "Time for the timed calls of a row, of which there are 5 to 20000")
      ->check(CLI::Range(1e-6, 86400.0))
      ->check(not_nan)
      ->capture_default_str();
  app.add_option("--warmup", options.plan.warmup,
                 "Calls before the timed ones (default: as many as fill a quarter of --seconds)")
      ->check(CLI::Range(int64_t{0}, int64_t{100000000}));
  app.add_option("--root", options.root, "Root of bcast")->check(CLI::Range(0, (1 << 20) - 1));
  app.add_flag("--in-place", options.in_place, "Send from the receive buffer (IBCOLL_IN_PLACE)");
  app.add_flag("--check", options.check,
               "Verify every byte after one, two and three calls in turn; times then include waiting for it");
  app.add_flag("--blocking", options.blocking, "Blocking calls instead of one persistent request");
  app.add_option("--memory", text->memory, "Where the buffers come from; ibcoll: ibcoll_mem_alloc")
      ->check(CLI::IsMember({"malloc", "ibcoll"}))
      ->capture_default_str();
  app.add_option("--scheme", text->scheme,
                 "Of messages, copy: landing slots; zero_copy: straight into the receive buffer")
      ->check(CLI::IsMember(schemes))
      ->capture_default_str();
  app.add_option("--format", text->format, "How to print")->check(CLI::IsMember(formats))->capture_default_str();
  app.add_option("--output", options.output, "Write to this file instead of standard output");
  app.add_flag("--list", options.list, "List collectives and algorithms");
  app.set_version_flag("--version", ibcoll_version_string());
  app.callback([&options, text, collectives, schemes, formats] {
    if (options.list) return;
    if (text->collective.empty()) throw CLI::RequiredError("COLLECTIVE");
    options.collective = chosen<ibcoll_collective_t>(collectives, text->collective);
    options.scheme = chosen<ibcoll_scheme_t>(schemes, text->scheme);
    options.format = chosen<Options::Format>(formats, text->format);
    options.sizes = parse_sizes(text->range, text->factor);
    options.plan.budget_us = text->seconds * 1e6;
    options.library_memory = text->memory == "ibcoll";
    check_algorithm(options);
  });
}

}  // namespace

std::optional<EarlyEnd> parse_options(int argc, const char* const* argv, Options& options) {
  CLI::App app("Times a collective over a range of sizes. Start it under ibcoll_run or a PMIx launcher.");
  app.failure_message([](const CLI::App*, const CLI::Error& problem) {
    return fmt::format("ibcoll_perf: {}; see ibcoll_perf --help\n", problem.what());
  });
  describe_options(app, options);
  try {
    app.parse(argc, argv);
    return {};
  } catch (const CLI::ParseError& problem) {
    std::ostringstream output, error_output;
    const int code = app.exit(problem, output, error_output);
    return EarlyEnd{code == 0 ? 0 : 2, output.str(), error_output.str()};
  }
}

}  // namespace ibcoll::perf
