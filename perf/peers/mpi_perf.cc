// SPDX-License-Identifier: BSD-3-Clause
// ibcoll_perf --full for an MPI library: same options, loop, clock, statistics, buffers and irregular counts, so that
// perf/compare can put the two side by side. Built with the compiler wrapper of each MPI (perf/compare does it).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perf/peers/mpi_arrivals.h"
#include "perf/timed_loop.h"

namespace {

using ibcoll::Collective;
using ibcoll::oracle::Distribution;
using ibcoll::peers::Case;
using ibcoll::peers::MpiArrivals;
using ibcoll::peers::Wanted;

struct Free {
  void operator()(void* memory) const noexcept { std::free(memory); }
};
using Buffer = std::unique_ptr<char, Free>;

Buffer make_buffer(size_t bytes) {
  const size_t page = 4096;
  const size_t rounded = (bytes / page + 1) * page;
  Buffer buffer(static_cast<char*>(std::aligned_alloc(page, rounded)));
  if (!buffer) {
    std::fprintf(stderr, "mpi_perf: %zu bytes of memory are not to be had\n", rounded);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  std::memset(buffer.get(), 1, rounded);
  return buffer;
}

void run_case(Case& one, const ibcoll::perf::LoopPlan& plan) {
  std::vector<double> calls;
  ibcoll::perf::run_timed_loop(one, plan, calls);
  std::vector<double> all = one.gather(calls);
  if (!one.prints()) return;
  const ibcoll::perf::CallTimes times = ibcoll::perf::summarize(all, one.ranks());
  std::printf("%s,%llu,%zu,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,0,mpi\n", one.name(),
              static_cast<unsigned long long>(one.bytes()), calls.size(), times.t_min, times.t_avg, times.t_max,
              times.p50, times.p90, times.p99);
  std::fflush(stdout);
}

// MIN, MIN*factor, ... and MAX itself.
std::vector<uint64_t> sizes_between(uint64_t min, uint64_t max, uint64_t factor) {
  std::vector<uint64_t> sizes;
  for (uint64_t bytes = min; bytes < max; bytes *= factor) sizes.push_back(bytes);
  sizes.push_back(max);
  return sizes;
}

// The position of a word in an array of words; its length where it is none of them.
template <typename Words, typename Name>
size_t position(const Words& words, const std::string& word, Name name) {
  return static_cast<size_t>(
      std::find_if(std::begin(words), std::end(words), [&](const auto& one) { return name(one) == word; }) -
      std::begin(words));
}

[[noreturn]] void refuse(const std::string& what) {
  std::fprintf(stderr, "mpi_perf: %s\n", what.c_str());
  MPI_Abort(MPI_COMM_WORLD, 2);
  std::abort();
}

Wanted wanted(const std::string& collective, const std::string& distribution, const std::string& calls, int root) {
  Wanted wanted;
  const size_t row = position(ibcoll::kCatalog, collective, [](const Collective& one) { return one.name; });
  const size_t chosen =
      position(ibcoll::oracle::kDistributions, distribution, [](std::string_view one) { return one; });
  if (row == std::size(ibcoll::kCatalog)) refuse("there is no collective '" + collective + "'");
  if (chosen == std::size(ibcoll::oracle::kDistributions)) refuse("there is no distribution '" + distribution + "'");
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (root < 0 || root >= ranks) refuse("--root: there is no such rank");
  const size_t form = position(ibcoll::perf::kCallsNames, calls, [](std::string_view one) { return one; });
  if (form == std::size(ibcoll::perf::kCallsNames)) refuse("--calls: there is no '" + calls + "'");
  return {&ibcoll::kCatalog[row], static_cast<Distribution>(chosen), root, static_cast<ibcoll::perf::Calls>(form)};
}

// Nothing without --arrival. A pattern that cannot be read ends the program with the reason.
std::unique_ptr<MpiArrivals> arrivals(const std::string& text, const std::string& cost_text) {
  if (text.empty()) return nullptr;
  ibcoll::perf::ArrivalPattern pattern;
  std::optional<ibcoll::perf::MessageCost> cost;
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::string problem = ibcoll::perf::parse_arrival(text, pattern);
  if (problem.empty()) problem = ibcoll::perf::load_arrivals(pattern, ranks);
  if (!problem.empty()) refuse("--arrival: " + problem);
  if (!cost_text.empty()) problem = ibcoll::perf::parse_message_cost(cost_text, cost);
  if (!problem.empty()) refuse("--message-cost: " + problem);
  return std::make_unique<MpiArrivals>(std::move(pattern), cost);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  CLI::App app("The timed loop of ibcoll_perf over MPI; prints CSV");
  std::string name, range = "8:1048576", format = "csv", distribution = "mild", calls = "blocking", arrival,
                    message_cost;
  uint64_t factor = 2;
  int root = 0;
  double seconds = 0.2;
  ibcoll::perf::LoopPlan plan;
  app.add_option("COLLECTIVE", name)->required();
  app.add_option("--bytes", range, "MIN:MAX, bytes per block");
  app.add_option("--factor", factor, "from one size to the next")->check(CLI::Range(2, 1 << 20));
  app.add_option("--distribution", distribution, "of irregular blocks, as in ibcoll_perf");
  app.add_option("--root", root, "where a collective has one");
  app.add_option("--calls", calls, "as in ibcoll_perf");
  app.add_option("--seconds", seconds, "for the timed calls of one size")->check(CLI::PositiveNumber);
  app.add_option("--iterations", plan.iterations, "timed calls; 0: as --seconds says");
  app.add_option("--warmup", plan.warmup, "calls before them; negative: as many as ibcoll_perf makes");
  app.add_option("--arrival", arrival, "as in ibcoll_perf");
  app.add_option("--message-cost", message_cost, "as in ibcoll_perf");
  app.add_option("--format", format)->check(CLI::IsMember({"csv"}));
  CLI11_PARSE(app, argc, argv);

  unsigned long long min = 0, max = 0;
  if (std::sscanf(range.c_str(), "%llu:%llu", &min, &max) != 2 || min == 0 || min > max)
    refuse("--bytes " + range + ": MIN:MAX in bytes is wanted, 0 < MIN <= MAX");
  if (std::isnan(seconds)) refuse("--seconds: a number is wanted");  // CLI::PositiveNumber lets it pass
  plan.budget_us = seconds * 1e6;
  const Wanted what = wanted(name, distribution, calls, root);
  const auto sizes = what.row->moves_data() ? sizes_between(min, max, factor) : std::vector<uint64_t>{0};
  const Case largest(what, sizes.back());
  const Buffer send = make_buffer(largest.send_bytes() + ibcoll::perf::ChangingBuffers::kRoom),
               recv = make_buffer(largest.recv_bytes() + ibcoll::perf::ChangingBuffers::kRoom);
  std::unique_ptr<MpiArrivals> late = arrivals(arrival, message_cost);
  if (largest.prints())
    std::printf("%scollective,bytes,iterations,t_min,t_avg,t_max,p50,p90,p99,%serrors,algorithm\n",
                late ? late->heading(arrival).c_str() : "", late ? ibcoll::perf::arrival_csv_names().c_str() : "");
  for (const uint64_t bytes : sizes) {
    Case one(what, bytes);
    one.use(send.get(), recv.get());
    late ? late->run(one, plan) : run_case(one, plan);
  }
  late.reset();
  MPI_Finalize();
  return 0;
}
