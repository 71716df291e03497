// SPDX-License-Identifier: BSD-3-Clause
// ibcoll_perf for an MPI library: same options, loop, clock, statistics, buffers and irregular counts, so that
// perf/compare can put the two side by side. Built with the compiler wrapper of each MPI (perf/compare does it).
// Blocking calls, as most MPI programs use them.
#define OMPI_SKIP_MPICXX 1  // the C interface only
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "perf/timed_loop.h"
#include "runtime/base/catalog.h"
#include "tools/oracle/distributions.h"

namespace {

using ibcoll::Collective;
using ibcoll::Extent;
using ibcoll::oracle::Distribution;

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

// What a rank has in one buffer, packed in rank order. Counts are in units: bytes, or elements of a reduction.
struct Blocks {
  std::vector<int> counts, displacements;
  uint64_t total = 0;
  void add(uint64_t count) {
    if (total + count > INT_MAX) {
      std::fprintf(stderr, "mpi_perf: a buffer has more than 2^31 - 1 units, which MPI cannot count\n");
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    counts.push_back(static_cast<int>(count));
    displacements.push_back(static_cast<int>(total));
    total += count;
  }
};

// What all sizes share.
struct Wanted {
  const Collective* row = nullptr;
  Distribution distribution = Distribution::kMild;
  int root = 0;
};

// One collective at one size. Errors end the program inside MPI (MPI_ERRORS_ARE_FATAL), so every call is true.
class Case {
 public:
  Case(const Wanted& wanted, uint64_t bytes) : row_(*wanted.row), bytes_(bytes), root_(wanted.root) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    if (row_.reduces()) unit_ = ibcoll::perf::element_width(bytes);
    type_ = row_.reduces() ? element_type() : MPI_BYTE;
    for (int peer = 0; peer < size_; ++peer) {
      if (row_.send.extent == Extent::kBlocks || peer == rank_) send_.add(block(wanted.distribution, rank_, peer));
      if (row_.recv.extent == Extent::kBlocks || peer == rank_) recv_.add(block(wanted.distribution, peer, rank_));
    }
  }
  uint64_t send_bytes() const { return send_.total * unit_; }
  uint64_t recv_bytes() const { return recv_.total * unit_; }
  // Before the first call: buffers of the caller, which outlive this.
  void use(char* send, char* recv) { s_ = send, r_ = recv; }

  bool call() {
    const int *sc = send_.counts.data(), *rc = recv_.counts.data();
    const int *sd = send_.displacements.data(), *rd = recv_.displacements.data();
    const MPI_Comm world = MPI_COMM_WORLD;
    switch (row_.id) {
      case IBCOLL_BARRIER:
        MPI_Barrier(world);
        break;
      case IBCOLL_BCAST:
        MPI_Bcast(r_, rc[0], type_, root_, world);
        break;
      case IBCOLL_ALLGATHER:
        MPI_Allgather(s_, sc[0], type_, r_, rc[0], type_, world);
        break;
      case IBCOLL_ALLGATHERV:
        MPI_Allgatherv(s_, sc[0], type_, r_, rc, rd, type_, world);
        break;
      case IBCOLL_ALLTOALL:
        MPI_Alltoall(s_, sc[0], type_, r_, rc[0], type_, world);
        break;
      case IBCOLL_ALLTOALLV:
        MPI_Alltoallv(s_, sc, sd, type_, r_, rc, rd, type_, world);
        break;
      case IBCOLL_ALLREDUCE:
        MPI_Allreduce(s_, r_, rc[0], type_, MPI_SUM, world);
        break;
      case IBCOLL_GATHER:
        MPI_Gather(s_, sc[0], type_, r_, rc[0], type_, root_, world);
        break;
      case IBCOLL_GATHERV:
        MPI_Gatherv(s_, sc[0], type_, r_, rc, rd, type_, root_, world);
        break;
      case IBCOLL_SCATTER:
        MPI_Scatter(s_, sc[0], type_, r_, rc[0], type_, root_, world);
        break;
      case IBCOLL_SCATTERV:
        MPI_Scatterv(s_, sc, sd, type_, r_, rc[0], type_, root_, world);
        break;
      case IBCOLL_REDUCE:
        MPI_Reduce(s_, r_, rc[0], type_, MPI_SUM, root_, world);
        break;
      case IBCOLL_REDUCE_SCATTER:
        MPI_Reduce_scatter(s_, r_, sc, type_, MPI_SUM, world);
        break;
      case IBCOLL_REDUCE_SCATTER_BLOCK:
        MPI_Reduce_scatter_block(s_, r_, rc[0], type_, MPI_SUM, world);
        break;
      case IBCOLL_SCAN:
        MPI_Scan(s_, r_, rc[0], type_, MPI_SUM, world);
        break;
      case IBCOLL_EXSCAN:
        MPI_Exscan(s_, r_, rc[0], type_, MPI_SUM, world);
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
  const char* name() const { return row_.name; }
  uint64_t bytes() const { return bytes_; }
  bool prints() const { return rank_ == 0; }
  size_t ranks() const { return static_cast<size_t>(size_); }

 private:
  // As ibcoll_perf has them, in units.
  uint64_t block(Distribution distribution, int source, int destination) const {
    const uint64_t base = bytes_ / unit_;
    if (!row_.irregular()) return base;
    if (row_.sizes == ibcoll::SizesKnown::kToPairs)
      return ibcoll::oracle::distributed_pair(distribution, base, source, destination, size_);
    const int rank = row_.recv.extent == Extent::kBlocks ? source : destination;
    return ibcoll::oracle::distributed(distribution, base, rank, size_);
  }

  MPI_Datatype element_type() const {
    switch (unit_) {
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

  const Collective& row_;
  uint64_t bytes_, unit_ = 1;
  MPI_Datatype type_ = MPI_BYTE;
  int rank_ = 0, size_ = 1, root_;
  Blocks send_, recv_;
  char *s_ = nullptr, *r_ = nullptr;
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

Wanted wanted(const std::string& collective, const std::string& distribution, int root) {
  Wanted wanted;
  const size_t row = position(ibcoll::kCatalog, collective, [](const Collective& one) { return one.name; });
  const size_t chosen =
      position(ibcoll::oracle::kDistributions, distribution, [](std::string_view one) { return one; });
  if (row == std::size(ibcoll::kCatalog)) refuse("there is no collective '" + collective + "'");
  if (chosen == std::size(ibcoll::oracle::kDistributions)) refuse("there is no distribution '" + distribution + "'");
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (root < 0 || root >= ranks) refuse("--root: there is no such rank");
  return {&ibcoll::kCatalog[row], static_cast<Distribution>(chosen), root};
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  CLI::App app("The timed loop of ibcoll_perf over MPI; prints CSV");
  std::string name, range = "8:1048576", format = "csv", distribution = "mild";
  uint64_t factor = 2;
  int root = 0;
  double seconds = 0.2;
  ibcoll::perf::LoopPlan plan;
  app.add_option("COLLECTIVE", name)->required();
  app.add_option("--bytes", range, "MIN:MAX, bytes per block");
  app.add_option("--factor", factor, "from one size to the next")->check(CLI::Range(2, 1 << 20));
  app.add_option("--distribution", distribution, "of irregular blocks, as in ibcoll_perf");
  app.add_option("--root", root, "where a collective has one");
  app.add_option("--seconds", seconds, "for the timed calls of one size")->check(CLI::PositiveNumber);
  app.add_option("--iterations", plan.iterations, "timed calls; 0: as --seconds says");
  app.add_option("--warmup", plan.warmup, "calls before; negative: chosen");
  app.add_option("--format", format)->check(CLI::IsMember({"csv"}));
  CLI11_PARSE(app, argc, argv);

  unsigned long long min = 0, max = 0;
  if (std::sscanf(range.c_str(), "%llu:%llu", &min, &max) != 2 || min == 0 || min > max)
    refuse("--bytes " + range + ": MIN:MAX in bytes is wanted, 0 < MIN <= MAX");
  if (std::isnan(seconds)) refuse("--seconds: a number is wanted");  // CLI::PositiveNumber lets it pass
  plan.budget_us = seconds * 1e6;
  const Wanted what = wanted(name, distribution, root);
  const auto sizes = what.row->moves_data() ? sizes_between(min, max, factor) : std::vector<uint64_t>{0};
  const Case largest(what, sizes.back());
  const Buffer send = make_buffer(largest.send_bytes()), recv = make_buffer(largest.recv_bytes());
  if (largest.prints()) std::printf("collective,bytes,iterations,t_min,t_avg,t_max,p99,errors,algorithm\n");
  for (const uint64_t bytes : sizes) {
    Case one(what, bytes);
    one.use(send.get(), recv.get());
    run_case(one, plan);
  }
  MPI_Finalize();
  return 0;
}
