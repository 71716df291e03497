// SPDX-License-Identifier: BSD-3-Clause
// ibcoll_radix IN OUT: sorts a file of 32-bit little-endian unsigned keys with all ranks of the job.
//   ibcoll_run -n 8 --nodes 2 ibcoll_radix IN OUT
// OUT is either the sorted file or as it was before; it may be IN. The directory of OUT is shared by all hosts.
#include <fmt/format.h>

#include <bit>
#include <chrono>
#include <climits>
#include <csignal>
#include <string>
#include <vector>

#include "perf/apps/layer/program.h"
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
Error same_length(AppJob& job, uint64_t keys) {
  uint64_t first = keys;
  Error error = job.from_rank_0(&first, sizeof first);
  if (error.empty() && first != keys) {
    error = fmt::format("the input has {} keys here and {} on rank 0: not the same file", keys, first);
  }
  return error;
}

// Rank 0 makes the temporary file, the others open it.
bool open_output(AppJob& job, const std::string& path, uint64_t keys, OutputFile& output) {
  if (!job.agree(job.rank() == 0 ? output.choose(path) : Error())) return false;
  std::vector<char> name(PATH_MAX, '\0');
  if (job.rank() == 0) output.temporary().copy(name.data(), name.size() - 1);
  if (!job.agree(job.from_rank_0(name.data(), name.size()))) return false;
  output.guard(name.data());
  if (!job.agree(Error())) return false;
  if (!job.agree(job.rank() == 0 ? output.create(keys) : Error())) return false;
  return job.agree(job.rank() == 0 ? Error() : output.open());
}

bool sort_file(AppJob& job, const std::string& in, const std::string& out, uint64_t& total, Phases& phases) {
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
  if (!job.agree(job.begin())) return false;
  Stopwatch watch;
  if (!job.agree(input.read(keys.get(), first, count))) return false;
  phases.read_us = watch.lap();
  if (!job.agree(sort(job, total, keys, spare, phases.sort))) return false;
  watch.lap();
  if (!job.agree(output.write(keys.get(), first, count))) return false;
  if (!job.agree(job.rank() == 0 ? output.rename() : Error())) return false;
  phases.write_us = watch.lap();
  job.end();
  output.keep();
  return true;
}

std::string phases_text(AppJob& job, uint64_t keys, const Phases& phases) {
  const double read = job.largest(phases.read_us), write = job.largest(phases.write_us);
  const double local = job.largest(phases.sort.local_us), exchange = job.largest(phases.sort.exchange_us);
  const double total = read + local + exchange + write;
  const auto rate = [keys](double us) { return us > 0 ? static_cast<double>(keys) / us : 0; };
  std::string text = fmt::format("{} keys, {} ranks; the slowest rank of each phase:\n{:<10}{:>12}{:>16}\n", keys,
                                 job.size(), "phase", "ms", "million keys/s");
  for (const auto& [name, us] : {std::pair<const char*, double>{"read", read},
                                 {"local", local},
                                 {"exchange", exchange},
                                 {"write", write},
                                 {"total", total}}) {
    text += fmt::format("{:<10}{:>12.3f}{:>16.2f}\n", name, us / 1e3, rate(us));
  }
  return text + "\n";
}

class Radix final : public apps::Application {
 public:
  const char* about() const override {
    return "Sorts a file of 32-bit little-endian unsigned keys with all ranks of the job";
  }
  void add_options(CLI::App& options) override {
    options.add_option("IN", in_, "keys to sort")->required();
    options.add_option("OUT", out_, "sorted keys; untouched unless all went well; may be IN")->required();
  }
  bool run(AppJob& job) override {
    // A limit on file sizes is an error from the call that meets it.
    std::signal(SIGXFSZ, SIG_IGN);
    return sort_file(job, in_, out_, keys_, phases_);
  }
  std::string title() const override { return fmt::format("RADIX: {} keys, sorted", keys_); }
  std::string details(AppJob& job) override { return phases_text(job, keys_, phases_); }

 private:
  std::string in_, out_;
  uint64_t keys_ = 0;
  Phases phases_;
};

}  // namespace
}  // namespace radix

int main(int argc, char** argv) {
  radix::Radix application;
  return apps::run_application(application, argc, argv);
}
