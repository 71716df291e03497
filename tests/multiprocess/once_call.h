// SPDX-License-Identifier: BSD-3-Clause
// A checked call as a collective that runs once, again and again.
#pragma once

#include <utility>

#include "tests/multiprocess/checked_call.h"
#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {

class OnceCall {
 public:
  OnceCall(ibcoll_team_t team, const CallParams& params) : team_(team), call_(team, params) {}

  bool start(uint64_t round) {
    call_.fill(round);
    const ibcoll_collective_args_t args = call_.args();
    return expect_ok(ibcoll_collective_start(team_, &args, &request_), "start of " + call_.params().describe());
  }
  bool wait(uint64_t round) {
    return expect_ok(ibcoll_wait(std::exchange(request_, nullptr)), call_.params().describe()) && call_.verify(round);
  }
  bool test_until_complete(uint64_t round) {
    constexpr double kTimeout = 20;  // seconds
    ibcoll_status_t status = IBCOLL_IN_PROGRESS;
    for (const double end = seconds_now() + kTimeout; status == IBCOLL_IN_PROGRESS && seconds_now() < end;)
      status = ibcoll_test(request_);
    request_ = nullptr;
    return expect_ok(status, "test of " + call_.params().describe()) && call_.verify(round);
  }
  CheckedCall& checked() { return call_; }

 private:
  ibcoll_team_t team_;
  CheckedCall call_;
  ibcoll_request_t request_ = nullptr;
};

}  // namespace ibcoll::multiprocess
