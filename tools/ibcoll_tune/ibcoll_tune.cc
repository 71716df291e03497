// SPDX-License-Identifier: BSD-3-Clause
// ibcoll_tune: makes the calls by which ibcoll learns, for later jobs of this layout with IBCOLL_LEARN=on
// (IBCOLL_TUNING).
//
//   ibcoll_run -n 16 --nodes 4 ibcoll_tune --collective allreduce -m 8:64K
//
// Exit status: 0; 1: ibcoll fails, or keeps nothing; 2: wrong options.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ibcoll.h"
#include "runtime/base/catalog.h"
#include "tools/options/early_end.h"
#include "tools/options/sizes.h"

namespace ibcoll::tune {
namespace {

struct Options {
  std::vector<ibcoll_collective_t> collectives;
  uint64_t least = 8, most = 1 << 16;
};

void check(ibcoll_status_t status) {
  if (status != IBCOLL_OK) throw std::runtime_error(ibcoll_last_error());
}

// The job of this process.
class Job {
 public:
  Job() { check(ibcoll_context_create(nullptr, &context_)); }
  ~Job() {
    if (context_) (void)ibcoll_context_destroy(context_);
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  // Writes what was learned.
  void end() {
    const ibcoll_context_t context = std::exchange(context_, nullptr);
    check(ibcoll_context_destroy(context));
  }
  ibcoll_team_t world() const { return ibcoll_team_world(context_); }
  bool is_root() const { return ibcoll_context_rank(context_) == 0; }
  auto ranks() const { return static_cast<size_t>(ibcoll_team_size(world())); }

 private:
  ibcoll_context_t context_ = nullptr;
};

// Four sizes an octave: calls whose sizes differ by less are one class.
std::vector<uint64_t> sizes_of(const Options& options, const Collective& row) {
  if (!row.moves_data()) return {0};
  std::vector<uint64_t> sizes;
  for (uint64_t bytes = options.least; bytes <= options.most;) {
    sizes.push_back(bytes);
    const uint64_t step = std::max<uint64_t>(sizeof(double), std::bit_floor(bytes) / 4);
    bytes = (bytes / step + 1) * step;
  }
  return sizes;
}

// The calls of one class.
class Calls {
 public:
  Calls(const Job& job, const Collective& row, uint64_t bytes)
      : job_(job), counts_(job.ranks(), bytes), send_(bytes * job.ranks()), recv_(bytes * job.ranks()) {
    for (size_t i = 0; i < counts_.size(); ++i) displacements_.push_back(i * bytes);
    args_.struct_size = sizeof args_;
    args_.collective = row.id;
    args_.send = send_.data();
    args_.recv = recv_.data();
    if (!row.irregular()) args_.bytes = bytes;
    if (row.irregular()) args_.recv_counts = counts_.data();
    if (row.irregular() && !row.reduces()) args_.recv_displacements = displacements_.data();
    if (!row.reduces()) return;
    args_.bytes = 0;
    args_.type = IBCOLL_DOUBLE;
    args_.op = IBCOLL_SUM;
    if (!row.irregular()) args_.count = bytes / sizeof(double);
  }

  // The algorithm and why it is taken.
  std::pair<std::string, std::string> choice() const {
    std::string text(16384, '\0');
    check(ibcoll_explain(job_.world(), &args_, text.data(), text.size()));
    const auto decision = nlohmann::json::parse(text.c_str());
    return {decision["algorithm"], decision["reason"]};
  }
  // Until the choice is made, which needs 64 calls and one more at most.
  void learn() const {
    constexpr int kMostCalls = 100;
    ibcoll_request_t request = nullptr;
    check(ibcoll_collective_init(job_.world(), &args_, &request));
    for (int call = 0; call < kMostCalls && choice().second.starts_with("lowest"); ++call) {
      check(ibcoll_start(request));
      check(ibcoll_wait(request));
    }
    check(ibcoll_request_free(request));
  }

 private:
  const Job& job_;
  std::vector<uint64_t> counts_, displacements_;
  std::vector<std::byte> send_, recv_;
  ibcoll_collective_args_t args_{};
};

void show_progress(size_t done, size_t all, const std::string& what) {
  constexpr size_t kWidth = 40;
  const size_t filled = kWidth * done / all;
  fmt::print(stderr, "\r[{:<{}}] {:3} %  {:<32}", std::string(filled, '#'), kWidth, 100 * done / all, what);
  if (done == all) fmt::print(stderr, "\n");
}

void tune(const Options& options, Job& job) {
  size_t all = 0, done = 0;
  for (const ibcoll_collective_t collective : options.collectives)
    all += sizes_of(options, kCatalog[collective]).size();
  const bool shows = job.is_root() && ::isatty(STDERR_FILENO) != 0;
  std::string found;
  for (const ibcoll_collective_t collective : options.collectives) {
    const Collective& row = kCatalog[collective];
    for (const uint64_t bytes : sizes_of(options, row)) {
      if (shows) show_progress(done++, all, fmt::format("{} {} bytes", row.name, bytes));
      const Calls calls(job, row, bytes);
      calls.learn();
      const auto [algorithm, reason] = calls.choice();
      found += fmt::format("{:<21} {:>9}  {:<28} {}\n", row.name, bytes, algorithm, reason);
    }
  }
  if (shows) show_progress(all, all, "");
  if (!job.is_root()) return;
  fmt::print("{:<21} {:>9}  {:<28} {}\n{}", "collective", "bytes", "algorithm", "why", found);
  if (std::fflush(stdout) != 0) throw std::runtime_error("standard output cannot be written");
}

std::vector<std::string> learned_collectives() {
  std::vector<std::string> names;
  for (const Collective& row : kCatalog)
    if (row.waits_for_all()) names.emplace_back(row.name);
  return names;
}

std::optional<EarlyEnd> parse(int argc, char** argv, Options& options) {
  CLI::App app("Tries the algorithms of ibcoll on this machine, for later jobs with as many ranks on as many nodes.");
  std::vector<std::string> names = learned_collectives();
  std::string range = "8:64K";
  app.add_option("--collective", names, "Which: a list such as allreduce,barrier (default: all that are learned)")
      ->delimiter(',')
      ->check(CLI::IsMember(learned_collectives()));
  app.add_option("-m,--bytes", range,
                 "MIN:MAX or one size; bytes per block, multiples of 8; reductions are sums of doubles")
      ->capture_default_str();
  app.set_version_flag("--version", ibcoll_version_string());
  app.callback([&] {
    for (const Collective& row : kCatalog)
      if (std::find(names.begin(), names.end(), row.name) != names.end()) options.collectives.push_back(row.id);
    const std::vector<uint64_t> ends = parse_sizes(range, uint64_t{1} << 32);
    options.least = ends.front();
    options.most = ends.back();
    if (options.least == 0 || options.least % 8 != 0) throw CLI::ValidationError("--bytes", "sizes are multiples of 8");
  });
  return parse_command_line(app, "ibcoll_tune", argc, argv);
}

int run_program(int argc, char** argv) {
  Options options;
  if (const std::optional<EarlyEnd> end = parse(argc, argv, options)) {
    fmt::print("{}", end->output);
    fmt::print(stderr, "{}", end->error);
    return end->status;
  }
  ::setenv("IBCOLL_LEARN", "on", 1);  // whatever the jobs are to do for which it learns
  Job job;
  tune(options, job);
  job.end();
  return 0;
}

}  // namespace
}  // namespace ibcoll::tune

int main(int argc, char** argv) {
  try {
    return ibcoll::tune::run_program(argc, argv);
  } catch (const std::exception& problem) {
    fmt::print(stderr, "ibcoll_tune: {}\n", problem.what());
    return 1;
  }
}
