// SPDX-License-Identifier: BSD-3-Clause
#include "perf/ibcoll_perf/job_pairs.h"

#include "tools/own_calls.h"

namespace ibcoll::perf {

JobPairs::~JobPairs() {
  for (const ibcoll_request_t request : requests_) (void)ibcoll_request_free(request);
  (void)ibcoll_team_free(team_);
}

bool JobPairs::open(int first, int second, void* buffer, uint64_t bytes) {
  const int ranks[] = {first, second};
  ibcoll_status_t status = ibcoll_team_create(job_.team(), ranks, 2, &team_);
  if (status != IBCOLL_OK) return job_.fail("team of two ranks", status);
  for (int root = 0; root < 2 && team_ != nullptr; ++root) {
    ibcoll_collective_args_t args = own_call(IBCOLL_BCAST, nullptr, buffer);
    args.bytes = bytes;
    args.root = root;
    args.algorithm = "binomial";
    status = ibcoll_collective_init(team_, &args, &requests_[root]);
    if (status != IBCOLL_OK) return job_.fail("message between two ranks", status);
  }
  return true;
}

bool JobPairs::message(bool forward) {
  const ibcoll_request_t request = requests_[forward ? 0 : 1];
  ibcoll_status_t status = ibcoll_start(request);
  if (status == IBCOLL_OK) status = ibcoll_wait(request);
  return status == IBCOLL_OK || job_.fail("message between two ranks", status);
}

bool JobPairs::close() {
  for (ibcoll_request_t& request : requests_) {
    const ibcoll_status_t status = ibcoll_request_free(request);
    request = nullptr;
    if (status != IBCOLL_OK) return job_.fail("message between two ranks", status);
  }
  const ibcoll_status_t status = ibcoll_team_free(team_);
  team_ = nullptr;
  return status == IBCOLL_OK || job_.fail("end of a team of two ranks", status);
}

}  // namespace ibcoll::perf
