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
  // For a rank that has waited for a while. The context's lock is held.
  void look() noexcept;

 private:
  struct News {
    int rank;
    std::string how;
    Time at;
  };

  Bootstrap& bootstrap_;
  Engine& engine_;
  std::vector<News> news_;  // that this rank does not act on yet
};

}  // namespace ibcoll
