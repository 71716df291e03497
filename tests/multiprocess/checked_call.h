// SPDX-License-Identifier: BSD-3-Clause
// One collective of the oracle on a team of processes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/oracle/call_case.h"

namespace ibcoll::multiprocess {

struct CallParams {
  ibcoll_collective_t collective = IBCOLL_BARRIER;
  uint64_t bytes = 0;  // of a block; irregular blocks have 0, bytes / 2, bytes and 2 bytes + 1, in whole elements
  int root = 0;
  bool in_place = false;  // on the ranks that may
  uint64_t gap = 0;       // irregular blocks lie in random order, with gaps of at most `gap` bytes
  ibcoll_scheme_t scheme = IBCOLL_SCHEME_AUTO;
  const char* algorithm = nullptr;
  uint64_t salt = 0;  // tells calls apart whose data must not be mixed up

  std::string describe() const;
  // On `ranks` ranks. Reductions are sums, of 64-bit integers where these divide `bytes`, else of bytes.
  oracle::CallParams on(int ranks) const;
};

class CheckedCall {
 public:
  CheckedCall(ibcoll_team_t team, const CallParams& params);
  // `exact` is what the oracle knows beyond `params`, which describes it.
  CheckedCall(ibcoll_team_t team, const CallParams& params, oracle::CallParams exact);
  CheckedCall(const CheckedCall&) = delete;
  CheckedCall& operator=(const CheckedCall&) = delete;

  const CallParams& params() const { return params_; }
  ibcoll_collective_args_t args() const { return case_.args(); }
  // The blocking shorthand. Scheme and algorithm are not among its arguments.
  ibcoll_status_t call() const;

  void fill(uint64_t round);
  // The result is right, the source as it was, what lies around the blocks too. Complains otherwise.
  bool verify(uint64_t round) const;
  // Only what lies around the blocks: for calls that failed. Complains otherwise.
  bool verify_guards() const;
  // After a failure: changes all memory; no rank may write to it from then on.
  void scribble() { case_.scribble(); }
  bool scribbled() const { return case_.check_scribbled().empty(); }
  // fill, call, verify.
  bool run(uint64_t round);

 private:
  ibcoll_team_t team_;
  CallParams params_;
  oracle::CallCase case_;
  uint64_t round_ = 0;
};

// One call of every collective, `bytes` each (barrier: none); root, salt and gap vary.
std::vector<CallParams> every_collective(uint64_t bytes, int team_size);

}  // namespace ibcoll::multiprocess
