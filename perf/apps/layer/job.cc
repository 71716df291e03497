// SPDX-License-Identifier: BSD-3-Clause
#include "perf/apps/layer/job.h"

#include <fmt/format.h>

#include <cerrno>
#include <numeric>

#include "perf/call_times.h"

namespace apps {
namespace {

constexpr size_t kRoomForCalls = 4096;  // more calls make the list grow between two of them

}  // namespace

bool AppJob::agree(const Error& mine) {
  const double none = size(), failed = mine.empty() ? none : rank();
  double first = none;
  const Error lost = library_.allreduce(&failed, &first, 1, Operation::kMin);
  if (!lost.empty() || (first == rank() && !mine.empty())) {
    fmt::print(stderr, "{}: rank {}: {}\n", program_invocation_short_name, rank(), mine.empty() ? lost : mine);
  }
  return lost.empty() && first == none;
}

double AppJob::largest(double value) {
  double result = 0;
  return library_.allreduce(&value, &result, 1, Operation::kMax).empty() ? result : 0;
}

Error AppJob::from_rank_0(void* bytes, uint64_t count) { return library_.bcast(bytes, count, 0); }

Error AppJob::begin() {
  calls_.clear();
  calls_.reserve(kRoomForCalls);
  Error error = library_.barrier();
  begin_us_ = ibcoll::perf::now_us();
  return error;
}

void AppJob::end() { total_us_ = ibcoll::perf::now_us() - begin_us_; }

template <typename Function>
Error AppJob::timed(const char* collective, uint64_t bytes, Function function) {
  const double arrival = ibcoll::perf::now_us();
  Error error = function();
  calls_.push_back({collective, bytes, {arrival, ibcoll::perf::now_us()}});
  return error;
}

Error AppJob::allgather(const void* send, void* recv, uint64_t bytes) {
  return timed("allgather", bytes, [&] { return library_.allgather(send, recv, bytes); });
}

Error AppJob::alltoall(const void* send, void* recv, uint64_t bytes) {
  return timed("alltoall", bytes, [&] { return library_.alltoall(send, recv, bytes); });
}

Error AppJob::alltoallv(const void* send, const uint64_t* send_counts, const uint64_t* send_displacements, void* recv,
                        const uint64_t* recv_counts, const uint64_t* recv_displacements) {
  const auto ranks = static_cast<uint64_t>(size());
  return timed("alltoallv", std::accumulate(send_counts, send_counts + ranks, uint64_t{0}) / ranks, [&] {
    return library_.alltoallv(send, send_counts, send_displacements, recv, recv_counts, recv_displacements);
  });
}

Error AppJob::sum_to_0(const double* in, double* out, uint64_t count) {
  return timed("reduce", count * sizeof(double), [&] { return library_.sum_to_0(in, out, count); });
}

}  // namespace apps
