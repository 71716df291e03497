// SPDX-License-Identifier: BSD-3-Clause
// ibcoll_perf for an MPI library: same options, loop, clock, statistics, buffers and irregular counts, so that
// perf/compare can put the two side by side. Built with the compiler wrapper of each MPI (perf/compare does it).
// Blocking calls, as most MPI programs use them.
#define OMPI_SKIP_MPICXX 1  // the C interface only
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "perf/timed_loop.h"
#include "tools/oracle/distributions.h"

namespace {

uint64_t irregular_bytes(uint64_t bytes, int source, int destination) {
  return ibcoll::oracle::distributed(ibcoll::oracle::Distribution::kMild, bytes, source, 1, destination);
}

enum Collective { kBarrier, kBcast, kAllgather, kAllgatherv, kAlltoall, kAlltoallv, kAllreduce };
const std::vector<std::string> kNames = {"barrier",  "bcast",     "allgather", "allgatherv",
                                         "alltoall", "alltoallv", "allreduce"};

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

// Counts of one side of an irregular collective, packed back to back.
struct Blocks {
  std::vector<int> counts, displacements;
  size_t total = 0;
  void add(uint64_t bytes) {
    counts.push_back(static_cast<int>(bytes));
    displacements.push_back(static_cast<int>(total));
    total += bytes;
  }
};

// One collective at one size. Errors end the program inside MPI (MPI_ERRORS_ARE_FATAL), so every call is true.
class Case {
 public:
  // The buffers are the caller's and hold a block of 3/2 of `bytes` per rank.
  Case(Collective collective, uint64_t bytes, char* send, char* recv)
      : collective_(collective), bytes_(bytes), send_(send), recv_(recv) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    for (int peer = 0; peer < size_; ++peer) {
      const bool gather = collective == kAllgatherv;
      send_blocks_.add(irregular_bytes(bytes, rank_, gather ? 0 : peer));
      recv_blocks_.add(irregular_bytes(bytes, peer, gather ? 0 : rank_));
    }
  }

  bool call() {
    const int count = static_cast<int>(bytes_);
    switch (collective_) {
      case kBarrier:
        MPI_Barrier(MPI_COMM_WORLD);
        break;
      case kBcast:
        MPI_Bcast(recv_, count, MPI_BYTE, 0, MPI_COMM_WORLD);
        break;
      case kAllgather:
        MPI_Allgather(send_, count, MPI_BYTE, recv_, count, MPI_BYTE, MPI_COMM_WORLD);
        break;
      case kAllgatherv:
        MPI_Allgatherv(send_, send_blocks_.counts[0], MPI_BYTE, recv_, recv_blocks_.counts.data(),
                       recv_blocks_.displacements.data(), MPI_BYTE, MPI_COMM_WORLD);
        break;
      case kAlltoall:
        MPI_Alltoall(send_, count, MPI_BYTE, recv_, count, MPI_BYTE, MPI_COMM_WORLD);
        break;
      case kAlltoallv:
        MPI_Alltoallv(send_, send_blocks_.counts.data(), send_blocks_.displacements.data(), MPI_BYTE, recv_,
                      recv_blocks_.counts.data(), recv_blocks_.displacements.data(), MPI_BYTE, MPI_COMM_WORLD);
        break;
      case kAllreduce:
        MPI_Allreduce(send_, recv_, count / static_cast<int>(ibcoll::perf::element_width(bytes_)), element_type(),
                      MPI_SUM, MPI_COMM_WORLD);
        break;
    }
    return true;
  }
  bool barrier() {
    MPI_Barrier(MPI_COMM_WORLD);
    return true;
  }
  bool largest(double& value) {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return true;
  }
  // All ranks' calls on rank 0; elsewhere unspecified.
  std::vector<double> gather(const std::vector<double>& calls) const {
    std::vector<double> all(calls.size() * static_cast<size_t>(size_));
    MPI_Gather(calls.data(), static_cast<int>(calls.size()), MPI_DOUBLE, all.data(), static_cast<int>(calls.size()),
               MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return all;
  }
  const char* name() const { return kNames[collective_].c_str(); }
  uint64_t bytes() const { return bytes_; }
  bool prints() const { return rank_ == 0; }
  size_t ranks() const { return static_cast<size_t>(size_); }

 private:
  MPI_Datatype element_type() const {
    switch (ibcoll::perf::element_width(bytes_)) {
      case 1:
        return MPI_UINT8_T;
      case 2:
        return MPI_UINT16_T;
      case 4:
        return MPI_FLOAT;
      default:
        return MPI_DOUBLE;
    }
  }

  Collective collective_;
  uint64_t bytes_;
  int rank_ = 0, size_ = 1;
  Blocks send_blocks_, recv_blocks_;
  char *send_, *recv_;
};

void run_case(Case& one, const ibcoll::perf::LoopPlan& plan) {
  std::vector<double> calls;
  ibcoll::perf::run_timed_loop(one, plan, calls);
  std::vector<double> all = one.gather(calls);
  if (!one.prints()) return;
  const ibcoll::perf::CallTimes times = ibcoll::perf::summarize(all, one.ranks());
  std::printf("%s,%llu,%zu,%.3f,%.3f,%.3f,%.3f,0,mpi\n", one.name(), static_cast<unsigned long long>(one.bytes()),
              calls.size(), times.t_min, times.t_avg, times.t_max, times.p99);
  std::fflush(stdout);
}

// MIN, MIN*factor, ... and MAX itself.
std::vector<uint64_t> sizes_between(uint64_t min, uint64_t max, uint64_t factor) {
  std::vector<uint64_t> sizes;
  for (uint64_t bytes = min; bytes < max; bytes *= factor) sizes.push_back(bytes);
  sizes.push_back(max);
  return sizes;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  CLI::App app("The timed loop of ibcoll_perf over MPI; prints CSV");
  std::string name, range = "8:1048576", format = "csv";
  uint64_t factor = 2;
  double seconds = 0.2;
  ibcoll::perf::LoopPlan plan;
  app.add_option("COLLECTIVE", name)->required()->check(CLI::IsMember(kNames));
  app.add_option("--bytes", range, "MIN:MAX, bytes per block");
  app.add_option("--factor", factor, "from one size to the next")->check(CLI::Range(2, 1 << 20));
  app.add_option("--seconds", seconds, "for the timed calls of one size")->check(CLI::PositiveNumber);
  app.add_option("--iterations", plan.iterations, "timed calls; 0: as --seconds says");
  app.add_option("--warmup", plan.warmup, "calls before; negative: chosen");
  app.add_option("--format", format)->check(CLI::IsMember({"csv"}));
  CLI11_PARSE(app, argc, argv);

  unsigned long long min = 0, max = 0;
  if (std::sscanf(range.c_str(), "%llu:%llu", &min, &max) != 2 || min == 0 || min > max) {
    std::fprintf(stderr, "mpi_perf: --bytes %s: MIN:MAX in bytes is wanted, 0 < MIN <= MAX\n", range.c_str());
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  if (std::isnan(seconds)) {  // CLI::PositiveNumber lets it pass
    std::fprintf(stderr, "mpi_perf: --seconds: a number is wanted\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  plan.budget_us = seconds * 1e6;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) std::printf("collective,bytes,iterations,t_min,t_avg,t_max,p99,errors,algorithm\n");
  const auto collective = static_cast<Collective>(std::find(kNames.begin(), kNames.end(), name) - kNames.begin());
  const auto sizes = collective == kBarrier ? std::vector<uint64_t>{0} : sizes_between(min, max, factor);
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const size_t room = 2 * sizes.back() * static_cast<size_t>(ranks);  // irregular blocks are up to 3/2 of a size
  const Buffer send = make_buffer(room), recv = make_buffer(room);
  for (const uint64_t bytes : sizes) {
    Case one(collective, bytes, send.get(), recv.get());
    run_case(one, plan);
  }
  MPI_Finalize();
  return 0;
}
