// SPDX-License-Identifier: BSD-3-Clause
// ibcoll_radix IN OUT: sorts a file of 32-bit little-endian unsigned keys with all ranks of the job.
//   ibcoll_run -n 8 --nodes 2 ibcoll_radix IN OUT
// OUT is either the sorted file or as it was before; it may be IN. The directory of OUT is shared by all hosts.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <bit>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "perf/apps/radix/job.h"
#include "perf/apps/radix/key_file.h"
#include "perf/apps/radix/sort.h"

static_assert(std::endian::native == std::endian::little, "keys are read as they lie in the file");

namespace radix {
namespace {

class Stopwatch {
 public:
  // Microseconds since the last call or construction.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const double time = std::chrono::duration<double, std::micro>(now - begin_).count();
    begin_ = now;
    return time;
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

struct Phases {
  double read_us = 0, write_us = 0;
  SortTimes sort;
};

// Every rank sees the same file: one that differs between hosts would be sorted into nonsense.
Error same_length(Job& job, uint64_t keys) {
  uint64_t first = keys;
  Error error = job.from_rank_0(&first, sizeof first);
  if (error.empty() && first != keys) {
    error = fmt::format("the input has {} keys here and {} on rank 0: not the same file", keys, first);
  }
  return error;
}

// Rank 0 makes the temporary file, the others open it.
bool open_output(Job& job, const std::string& path, uint64_t keys, OutputFile& output) {
  if (!job.agree(job.rank() == 0 ? output.choose(path) : Error())) return false;
  std::vector<char> name(PATH_MAX, '\0');
  if (job.rank() == 0) output.temporary().copy(name.data(), name.size() - 1);
  if (!job.agree(job.from_rank_0(name.data(), name.size()))) return false;
  output.guard(name.data());
  if (!job.agree(Error())) return false;
  if (!job.agree(job.rank() == 0 ? output.create(keys) : Error())) return false;
  return job.agree(job.rank() == 0 ? Error() : output.open());
}

bool sort_file(Job& job, const std::string& in, const std::string& out, uint64_t& total, Phases& phases) {
  InputFile input;
  if (!job.agree(input.open(in)) || !job.agree(same_length(job, input.keys()))) return false;
  total = input.keys();
  const uint64_t first = first_key(total, job.rank(), job.size());
  const uint64_t count = first_key(total, job.rank() + 1, job.size()) - first;
  OutputFile output;
  if (!open_output(job, out, total, output)) return false;

  Keys keys = make_keys(count), spare = make_keys(count);
  if (!job.agree(keys && spare ? Error() : fmt::format("no memory for twice {} keys; use more hosts", count))) {
    return false;
  }
  Stopwatch watch;
  if (!job.agree(input.read(keys.get(), first, count))) return false;
  phases.read_us = watch.lap();
  if (!job.agree(sort(job, total, keys, spare, phases.sort))) return false;
  watch.lap();
  if (!job.agree(output.write(keys.get(), first, count))) return false;
  if (!job.agree(job.rank() == 0 ? output.rename() : Error())) return false;
  phases.write_us = watch.lap();
  output.keep();
  return true;
}

void print_phases(Job& job, uint64_t keys, const Phases& phases) {
  const double read = job.largest(phases.read_us), write = job.largest(phases.write_us);
  const double local = job.largest(phases.sort.local_us), exchange = job.largest(phases.sort.exchange_us);
  if (job.rank() != 0) return;
  const double total = read + local + exchange + write;
  const auto rate = [keys](double us) { return us > 0 ? static_cast<double>(keys) / us : 0; };
  fmt::print("{} keys, {} ranks; the slowest rank of each phase:\n", keys, job.size());
  fmt::print("{:<10}{:>12}{:>16}\n", "phase", "ms", "million keys/s");
  for (const auto& [name, us] : {std::pair<const char*, double>{"read", read},
                                 {"local", local},
                                 {"exchange", exchange},
                                 {"write", write},
                                 {"total", total}}) {
    fmt::print("{:<10}{:>12.3f}{:>16.2f}\n", name, us / 1e3, rate(us));
  }
}

// Exit status: what was printed is where it belongs.
int output_written() {
  if (std::fflush(stdout) == 0) return 0;
  fmt::print(stderr, "ibcoll_radix: standard output: {}\n", std::strerror(errno));
  return 1;
}

int run(int argc, char** argv) {
  Job job;
  const Error error = job.open();
  if (!error.empty()) {
    fmt::print(stderr, "ibcoll_radix: {}\n", error);
    return 1;
  }
  CLI::App app("Sorts a file of 32-bit little-endian unsigned keys with all ranks of the job", "ibcoll_radix");
  app.failure_message([](const CLI::App*, const CLI::Error& wrong) {
    return fmt::format("ibcoll_radix: {}; see ibcoll_radix --help\n", wrong.what());
  });
  std::string in, out;
  app.add_option("IN", in, "keys to sort")->required();
  app.add_option("OUT", out, "sorted keys; untouched unless all went well; may be IN")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& wrong) {
    // All ranks got the same arguments; one of them tells.
    if (job.rank() == 0) app.exit(wrong);
    return wrong.get_exit_code() == 0 ? output_written() : 2;
  }
  // A limit on file sizes is an error from the call that meets it.
  std::signal(SIGXFSZ, SIG_IGN);
  uint64_t keys = 0;
  Phases phases;
  if (!sort_file(job, in, out, keys, phases)) return 1;
  print_phases(job, keys, phases);
  return output_written();
}

}  // namespace
}  // namespace radix

int main(int argc, char** argv) {
  try {
    return radix::run(argc, argv);
  } catch (const std::exception& unexpected) {
    fmt::print(stderr, "ibcoll_radix: {}\n", unexpected.what());
    return 1;
  }
}
