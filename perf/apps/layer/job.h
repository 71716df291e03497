// SPDX-License-Identifier: BSD-3-Clause
// The ranks of an application as one: its collectives, each timed, and the agreements that its start and end need.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "perf/apps/layer/arrivals.h"
#include "perf/apps/layer/library.h"

namespace apps {

// One timed call on this rank.
struct Call {
  const char* collective;
  uint64_t bytes;  // of the block for one peer; of alltoallv the mean block
  Visit visit;
};

class AppJob {
 public:
  Error open() { return library_.open(); }
  int rank() const { return library_.rank(); }
  int size() const { return library_.size(); }
  Library& library() { return library_; }

  // Collective. True on all ranks when no rank has an error. Otherwise false on all: the lowest rank that has one
  // prints it, so that a missing file is reported once and not by each rank. A rank that cannot reach the others any
  // more prints that.
  bool agree(const Error& mine);
  // Collective. The largest of all ranks' values; 0 when the others cannot be asked.
  double largest(double value);
  // Collective. Rank 0's bytes, on all ranks.
  Error from_rank_0(void* bytes, uint64_t count);

  // Around what is to be measured, on all ranks; begin() waits for all.
  Error begin();
  void end();
  // Collectives of the application.
  Error allgather(const void* send, void* recv, uint64_t bytes);
  Error alltoall(const void* send, void* recv, uint64_t bytes);
  Error alltoallv(const void* send, const uint64_t* send_counts, const uint64_t* send_displacements, void* recv,
                  const uint64_t* recv_counts, const uint64_t* recv_displacements);
  Error sum_to_0(const double* in, double* out, uint64_t count);

  // Since begin().
  const std::vector<Call>& calls() const { return calls_; }
  double total_us() const { return total_us_; }

 private:
  template <typename Function>
  Error timed(const char* collective, uint64_t bytes, Function function);

  Library library_;
  std::vector<Call> calls_;
  double begin_us_ = 0, total_us_ = 0;
};

}  // namespace apps
