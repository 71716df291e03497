// SPDX-License-Identifier: BSD-3-Clause
// A checked call as a persistent request.
#pragma once

#include <utility>

#include "tests/multiprocess/checked_call.h"
#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {

class PersistentCall {
 public:
  PersistentCall(ibcoll_team_t team, const CallParams& params) : call_(team, params) {
    const ibcoll_collective_args_t args = call_.args();
    const ibcoll_status_t made = ibcoll_collective_init(team, &args, &request_);
    if (made == IBCOLL_ERR_NOT_APPLICABLE && params.algorithm) return;
    expect_ok(made, "init of " + params.describe());
  }
  PersistentCall(const PersistentCall&) = delete;
  PersistentCall& operator=(const PersistentCall&) = delete;
  ~PersistentCall() { free(); }

  void free() { expect_ok(ibcoll_request_free(std::exchange(request_, nullptr)), "ibcoll_request_free"); }

  // False: the algorithm that was demanded does not.
  bool applies() const { return request_ != nullptr; }
  bool start(uint64_t round) {
    call_.fill(round);
    return expect_ok(ibcoll_start(request_), "start of " + call_.params().describe());
  }
  bool wait(uint64_t round) {
    return expect_ok(ibcoll_wait(request_), call_.params().describe()) && call_.verify(round);
  }
  bool test_until_complete(uint64_t round) {
    ibcoll_status_t status = IBCOLL_IN_PROGRESS;
    for (const double end = seconds_now() + kTimeout; status == IBCOLL_IN_PROGRESS && seconds_now() < end;)
      status = ibcoll_test(request_);
    return expect_ok(status, "test of " + call_.params().describe()) && call_.verify(round);
  }
  bool wait_by_and_by(uint64_t round) {
    ibcoll_status_t status = IBCOLL_ERR_TIMEOUT;
    for (const double end = seconds_now() + kTimeout; status == IBCOLL_ERR_TIMEOUT && seconds_now() < end;)
      status = ibcoll_wait_timeout(request_, 50e-6);
    return expect_ok(status, "wait with timeout for " + call_.params().describe()) && call_.verify(round);
  }
  ibcoll_request_t get() const { return request_; }
  const CallParams& params() const { return call_.params(); }
  CheckedCall& checked() { return call_; }

 private:
  static constexpr double kTimeout = 20;  // seconds

  CheckedCall call_;
  ibcoll_request_t request_ = nullptr;
};

}  // namespace ibcoll::multiprocess
