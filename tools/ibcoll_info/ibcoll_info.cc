// SPDX-License-Identifier: BSD-3-Clause
// ibcoll_info: transports and devices, settings, and the algorithms that would run.
//
//   ibcoll_info -c                              settings
//   ibcoll_run -n 16 --nodes 4 ibcoll_info -A   what would run for 16 ranks on 4 nodes, and why
//
// Exit status: 0; 1: ibcoll does not start or a setting is malformed; 2: wrong options.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>
#include <set>

#include "ibcoll.h"
#include "runtime/base/catalog.h"
#include "runtime/base/low_descriptors.h"
#include "tools/ibcoll_info/answer.h"
#include "tools/options/early_end.h"
#include "tools/options/help.h"
#include "tools/options/output_file.h"

namespace ibcoll::info {
namespace {

// The job of this process, if it starts.
class Context {
 public:
  Context() {
    if (ibcoll_context_create(nullptr, &context_) == IBCOLL_OK) return;
    context_ = nullptr;
    failure_ = ibcoll_last_error();
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() {
    if (context_ != nullptr) (void)ibcoll_context_destroy(context_);
  }
  ibcoll_context_t get() const { return context_; }
  const std::string& failure() const { return failure_; }
  bool speaks() const { return context_ == nullptr || ibcoll_context_rank(context_) == 0; }

 private:
  ibcoll_context_t context_ = nullptr;
  std::string failure_;
};

uint64_t parse_size(std::string text) {
  const bool starts_with_digit = !text.empty() && text[0] >= '0' && text[0] <= '9';
  uint64_t value = 0;
  // The last: a number that is too large was read as the largest one.
  if (!starts_with_digit || !CLI::AsSizeValue(false)(text).empty() || !CLI::detail::lexical_cast(text, value) ||
      std::to_string(value) != text) {
    throw CLI::ValidationError("--bytes", fmt::format("'{}': MIN:MAX or one size is wanted, e.g. 1:1M", text));
  }
  return value;
}

void describe_options(CLI::App& app, Options& options) {
  app.add_flag("-v,--version", options.version, "Version and build");
  app.add_flag("-c,--settings", options.settings, "Every setting: value, origin, default, meaning");
  app.add_flag("-d,--devices", options.devices, "Ranks, nodes and transports, and why one is not used");
  app.add_flag("-A,--algorithms", options.algorithms, "Algorithms, and which would run at which sizes, and why");
  std::set<std::string> names;
  for (int i = 0; i < kCollectives; ++i) {
    names.insert(ibcoll_collective_name(static_cast<ibcoll_collective_t>(i)));
  }
  app.add_option("--collective", options.collective, "With -A: this one only")->check(CLI::IsMember(names));
  app.add_option_function<std::string>(
         "--bytes",
         [&options](const std::string& range) {
           const size_t colon = range.find(':');
           options.min_bytes = parse_size(range.substr(0, colon));
           options.max_bytes = colon == std::string::npos ? options.min_bytes : parse_size(range.substr(colon + 1));
           if (options.min_bytes > options.max_bytes) {
             throw CLI::ValidationError("--bytes", fmt::format("'{}': MIN is larger than MAX", range));
           }
         },
         "With -A: MIN:MAX or one size (default 1:4M)")
      ->type_name("MIN:MAX");
  app.add_flag("--json", options.as_json, "For programs");
  app.callback([&options] {
    if (!options.version && !options.settings && !options.devices && !options.algorithms) {
      options.version = options.devices = true;
    }
  });
}

int run_program(int argc, char** argv) {
  Options options;
  CLI::App app("Shows version, settings, devices and algorithms of ibcoll; of a whole job under ibcoll_run.");
  give_help(app,
            "  ibcoll_info -c                               settings\n"
            "  ibcoll_run --host h1:2,h2:2 ibcoll_info -d   which network, and why\n"
            "  ibcoll_run -n 16 --nodes 4 ibcoll_info -A    what would run there, and why\n");
  describe_options(app, options);
  if (const std::optional<EarlyEnd> end = parse_command_line(app, "ibcoll_info", argc, argv)) {
    const Context context;
    return context.speaks() ? print(*end, "ibcoll_info") : end->status;
  }
  const Context context;
  std::string failure = context.failure();
  const std::string text = answer(options, context.get(), failure);
  if (context.speaks()) {
    const std::string problem = print_all(text);
    failure += (failure.empty() || problem.empty() ? "" : "; ") + problem;
  }
  if (failure.empty()) return 0;
  fmt::print(stderr, "ibcoll_info: {}\n", failure);
  return 1;
}

}  // namespace
}  // namespace ibcoll::info

int main(int argc, char** argv) {
  ibcoll::occupy_low_descriptors();
  try {
    return ibcoll::info::run_program(argc, argv);
  } catch (const std::exception& problem) {
    fmt::print(stderr, "ibcoll_info: {}\n", problem.what());
    return 1;
  }
}
