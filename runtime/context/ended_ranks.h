// SPDX-License-Identifier: BSD-3-Clause
// Ranks whose ends the launcher reports: sooner than some networks notice, and with the exit status or the signal.
#pragma once

#include <string>
#include <vector>

#include "bootstrap/bootstrap.h"
#include "runtime/engine/engine.h"

namespace ibcoll {

class EndedRanks {
 public:
  // Both outlive it.
  EndedRanks(Bootstrap& bootstrap, Engine& engine) : bootstrap_(bootstrap), engine_(engine) {}
  // Takes what the launcher has reported. For a rank that has waited for a while; the context's lock is held.
  void poll() noexcept;

 private:
  struct Report {
    int rank;
    std::string how;
    Time at;
  };

  Bootstrap& bootstrap_;
  Engine& engine_;
  std::vector<Report> reports_;  // not applied yet
};

}  // namespace ibcoll
