// SPDX-License-Identifier: BSD-3-Clause
#include "perf/apps/radix/job.h"

#include <fmt/format.h>

namespace radix {

Error check(ibcoll_status_t status, const char* what) {
  if (status == IBCOLL_OK) return {};
  const std::string story = ibcoll_last_error();
  return fmt::format("{}: {}", what, story.empty() ? ibcoll_status_string(status) : story);
}

Job::~Job() {
  if (context_ == nullptr) return;
  // The sorted file is in place or given up by now; a failure here changes neither.
  const Error error = check(ibcoll_context_destroy(context_), "leaving the job");
  if (!error.empty()) fmt::print(stderr, "ibcoll_radix: rank {}: {}\n", rank_, error);
}

Error Job::open() {
  Error error = check(ibcoll_context_create(nullptr, &context_), "joining the job");
  if (!error.empty()) {
    context_ = nullptr;
    return error;
  }
  team_ = ibcoll_team_world(context_);
  rank_ = ibcoll_context_rank(context_);
  size_ = ibcoll_context_size(context_);
  return {};
}

bool Job::agree(const Error& mine) {
  const int32_t failed = mine.empty() ? size_ : rank_;
  int32_t first = size_;
  const Error lost = check(ibcoll_allreduce(team_, &failed, &first, 1, IBCOLL_INT32, IBCOLL_MIN), "asking all ranks");
  if (!lost.empty() || (first == rank_ && !mine.empty())) {
    fmt::print(stderr, "ibcoll_radix: rank {}: {}\n", rank_, mine.empty() ? lost : mine);
  }
  return lost.empty() && first == size_;
}

double Job::largest(double value) {
  double result = 0;
  const auto status = ibcoll_allreduce(team_, &value, &result, 1, IBCOLL_DOUBLE, IBCOLL_MAX);
  return status == IBCOLL_OK ? result : 0;
}

Error Job::from_rank_0(void* bytes, uint64_t count) {
  return check(ibcoll_bcast(team_, bytes, count, 0), "hearing from rank 0");
}

}  // namespace radix
