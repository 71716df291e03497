// SPDX-License-Identifier: BSD-3-Clause
// The ranks that measure together, and what they have to agree upon.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ibcoll.h"

namespace ibcoll::perf {

// Functions return false after a failure, whose text failure() has: the job is then beyond use.
class PerfJob {
 public:
  PerfJob() = default;
  PerfJob(const PerfJob&) = delete;
  PerfJob& operator=(const PerfJob&) = delete;
  ~PerfJob();

  bool open();
  bool close();
  // Leaves the context to the end of the process: its orderly end would wait for ranks that may never come.
  void abandon();

  // A number of this rank's topology, as ibcoll_info_json shows it.
  uint64_t topology(const char* name) const;
  bool is_open() const { return team_ != nullptr; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  ibcoll_context_t context() const { return context_; }
  ibcoll_team_t team() const { return team_; }

  bool barrier();
  bool largest(double& value);  // the largest of all ranks' values, on all ranks
  bool sum(uint64_t& value);    // on all ranks
  bool worst(int32_t& status);  // the lowest ibcoll_status_t of all ranks, on all ranks
  // All ranks' values, in rank order, on rank 0; elsewhere empty. The same number on every rank.
  bool gather(const std::vector<double>& mine, std::vector<double>& all);

  // All ranks' values, in rank order, on all ranks.
  bool gather_everywhere(double mine, std::vector<double>& all);

  // Notes what failed, with ibcoll_last_error, and returns false.
  bool fail(std::string_view what, ibcoll_status_t status);
  // Collective. True where `problem` is empty on every rank. Else false, and the text becomes failure() on the lowest
  // of the ranks that have one; the others have nothing to say.
  bool agree(const std::string& problem);
  const std::string& failure() const { return failure_; }

 private:
  bool reduce(const void* mine, void* result, ibcoll_type_t type, ibcoll_op_t op);
  bool run_own(const ibcoll_collective_args_t& args, const char* what);

  ibcoll_context_t context_ = nullptr;
  ibcoll_team_t team_ = nullptr;
  int rank_ = 0, size_ = 1;
  std::string failure_;
};

// How many ranks, this one included, run on this rank's kernel: their monotonic clocks are one, and they share its
// memory.
bool ranks_on_this_kernel(PerfJob& job, int& count);

}  // namespace ibcoll::perf
