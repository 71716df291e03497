// SPDX-License-Identifier: BSD-3-Clause
// How rows are printed. table and csv print each row as it comes, json all at the end.
#pragma once

#include <vector>

#include "tools/ibcoll_sim/experiment.h"
#include "tools/ibcoll_sim/options.h"
#include "tools/options/output_file.h"

namespace ibcoll::simulator {

class Report {
 public:
  Report(const Options& options, OutputFile& output) : options_(options), output_(output) {}
  void begin();
  void add(const Row& row);
  void end();

 private:
  const Options& options_;
  OutputFile& output_;
  std::vector<Row> rows_;  // json
};

}  // namespace ibcoll::simulator
