// SPDX-License-Identifier: BSD-3-Clause
// Runs of one collective: which algorithms, and what each took.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "tools/ibcoll_sim/ledger.h"
#include "tools/ibcoll_sim/options.h"

namespace ibcoll::simulator {

struct Row {
  uint64_t bytes = 0;
  std::string algorithm;         // with its parameter
  std::string why_not;           // not empty: it does not apply, and nothing else is known
  bool selected = false;         // what auto takes
  double time_us = 0;            // from 0 until the last rank has ended
  double mean_us = 0;            // in the call, over all ranks
  double predicted_us = 0;       // what selection expects, of ranks that arrive together
  double predicted_late_us = 0;  // and of what is left when one late rank arrives
  uint32_t rounds = 0;
  Traffic between_nodes, within_nodes;
  uint64_t control_messages = 0;
  uint64_t errors = 0;  // bytes that are wrong, with --check
  std::string damage;   // the first of them
};

// Adds all rows of one size to `rows`. `trace`: a file that is open, or nullptr. Fails for a call that cannot be made, and an algorithm that
// was asked for by name and is not there or does not apply.
Status run_size(const Options& options, uint64_t bytes, OutputFile* trace, std::vector<Row>& rows);

}  // namespace ibcoll::simulator
