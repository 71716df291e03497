// SPDX-License-Identifier: BSD-3-Clause
// Measures the cost of ibcoll itself: start and completion of a persistent request of each collective, 8 bytes per
// block. With one rank waits for no other, and the time is that of the API and the engine. With more ranks the
// allocations are what counts: none per start after the first.
//   ibcoll_engine_overhead; ibcoll_run -n 16 ibcoll_engine_overhead
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "ibcoll.h"
#include "perf/call_times.h"
#include "perf/measures/count_allocations.h"
#include "perf/measures/must.h"
#include "runtime/base/catalog.h"

namespace {

using ibcoll::perf::largest;
using ibcoll::perf::must;

constexpr uint64_t kBytes = 8;
constexpr int kBatches = 21;

struct Overhead {
  double least_ns = 0, median_ns = 0;  // of the means of the batches
  double allocations = 0;              // per start
};

class Measured {
 public:
  Measured(ibcoll_team_t team, ibcoll_collective_t collective) {
    const auto size = static_cast<size_t>(ibcoll_team_size(team));
    send_.resize(size), recv_.resize(size), counts_.assign(size, kBytes);
    for (size_t i = 0; i < size; ++i) displacements_.push_back(i * kBytes);
    ibcoll_collective_args_t args{};
    args.struct_size = sizeof args;
    args.collective = collective;
    args.send = send_.data(), args.recv = recv_.data();
    args.send_counts = args.recv_counts = counts_.data();
    args.send_displacements = args.recv_displacements = displacements_.data();
    args.bytes = kBytes, args.count = 1, args.type = IBCOLL_DOUBLE, args.op = IBCOLL_SUM;
    must(ibcoll_collective_init(team, &args, &request_), ibcoll_collective_name(collective));
  }
  ~Measured() { must(ibcoll_request_free(request_), "ibcoll_request_free"); }
  Measured(const Measured&) = delete;
  Measured& operator=(const Measured&) = delete;

  void run(uint64_t times) {
    for (uint64_t i = 0; i < times; ++i) {
      must(ibcoll_start(request_), "ibcoll_start");
      must(ibcoll_wait(request_), "ibcoll_wait");
    }
  }
  const char* algorithm() const { return ibcoll_request_algorithm(request_); }

 private:
  std::vector<double> send_, recv_;
  std::vector<uint64_t> counts_, displacements_;
  ibcoll_request_t request_ = nullptr;
};

Overhead measure(Measured& measured, uint64_t calls) {
  measured.run(1);  // the first start may allocate
  const uint64_t before = ibcoll::perf::allocations();
  measured.run(1000);
  Overhead overhead;
  overhead.allocations = static_cast<double>(ibcoll::perf::allocations() - before) / 1000.0;
  std::array<double, kBatches> means{};
  for (double& mean : means) {
    const double begin = ibcoll::perf::now_us();
    measured.run(calls);
    mean = (ibcoll::perf::now_us() - begin) * 1e3 / static_cast<double>(calls);
  }
  std::sort(means.begin(), means.end());
  overhead.least_ns = means.front();
  overhead.median_ns = means[kBatches / 2];
  return overhead;
}

int run() {
  ibcoll_context_t context = nullptr;
  must(ibcoll_context_create(nullptr, &context), "ibcoll_context_create");
  const ibcoll_team_t team = ibcoll_team_world(context);
  const bool alone = ibcoll_team_size(team) == 1, prints = ibcoll_team_rank(team) == 0;
  if (prints) {
    fmt::print("{} rank{}, {} bytes, start + wait of a persistent request; allocations of the rank with most\n",
               ibcoll_team_size(team), alone ? "" : "s", kBytes);
    fmt::print("{:<12}{:>11}{:>11}{:>13}  {}\n", "collective", "least ns", "median ns", "allocations", "algorithm");
  }
  for (int i = 0; i < ibcoll::kCollectives; ++i) {
    const auto collective = static_cast<ibcoll_collective_t>(i);
    Measured measured(team, collective);
    Overhead overhead = measure(measured, alone ? 20000 : 200);
    overhead.allocations = largest(team, overhead.allocations);
    if (prints) {
      fmt::print("{:<12}{:>11.0f}{:>11.0f}{:>13.3f}  {}\n", ibcoll_collective_name(collective), overhead.least_ns,
                 overhead.median_ns, overhead.allocations, measured.algorithm());
    }
  }
  must(ibcoll_context_destroy(context), "ibcoll_context_destroy");
  return 0;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& unexpected) {
    fmt::print(stderr, "ibcoll_engine_overhead: {}\n", unexpected.what());
    return 1;
  }
}
