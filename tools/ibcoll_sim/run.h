// SPDX-License-Identifier: BSD-3-Clause
// One algorithm on all ranks of a simulated job.
#pragma once

#include <memory>
#include <vector>

#include "runtime/collectives/framework/forced.h"
#include "tools/ibcoll_sim/calls.h"
#include "tools/ibcoll_sim/experiment.h"
#include "tools/ibcoll_sim/job.h"
#include "tools/ibcoll_sim/ledger.h"
#include "tools/ibcoll_sim/watch.h"

namespace ibcoll::simulator {

class Run {
 public:
  // `options` and `trace` (a file that is open, or nullptr) outlive it. `predicted_us`: by selection.
  Run(const Options& options, const oracle::CallParams& params, const Choice& choice, double predicted_us,
      OutputFile* trace);

  // Until all ranks have ended.
  Status run();
  // Fills in what the run took.
  void fill(Row& row) const;

 private:
  SimJobParams watched(SimJobParams params);
  Status make_requests();
  void add_step(int rank);

  const Options& options_;
  Calls calls_;
  Watch watch_;
  SimJob job_;
  Ledger ledger_;
  Choice choice_;
  std::vector<std::unique_ptr<Request>> requests_;
  std::vector<Time> ended_;
  Status failure_;
};

}  // namespace ibcoll::simulator
