// SPDX-License-Identifier: BSD-3-Clause
// Single messages between two ranks of the job, as perf/arrival/link.h wants them.
#pragma once

#include <cstdint>
#include <vector>

#include "ibcoll.h"
#include "perf/ibcoll_perf/job.h"

namespace ibcoll::perf {

// A message is a bcast on a team of the two, by the binomial tree: there is no other traffic. Functions return false
// after a failure, which the job has the text of.
class JobPairs {
 public:
  explicit JobPairs(PerfJob& job) : job_(job) {}
  JobPairs(const JobPairs&) = delete;
  JobPairs& operator=(const JobPairs&) = delete;
  ~JobPairs();

  int rank() const { return job_.rank(); }
  int size() const { return job_.size(); }
  bool largest(double& value) { return job_.largest(value); }
  bool gather_everywhere(double mine, std::vector<double>& all) { return job_.gather_everywhere(mine, all); }

  bool open(int first, int second, void* buffer, uint64_t bytes);
  bool message(bool forward);
  bool close();

 private:
  PerfJob& job_;
  ibcoll_team_t team_ = nullptr;
  ibcoll_request_t requests_[2] = {};  // to the second rank, to the first one
};

}  // namespace ibcoll::perf
