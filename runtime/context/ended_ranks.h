// SPDX-License-Identifier: BSD-3-Clause
// Ranks whose ends the launcher reports: sooner than some networks notice, and with the exit status or the signal.
#pragma once

#include <algorithm>
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
  // No message of these ranks is expected any more: applies their reports without a delay.
  void apply(const std::vector<bool>& ranks) noexcept;
  // The launcher has reported the rank, and poll() has not applied that yet.
  bool reported(int job_rank) const noexcept {
    return std::any_of(reports_.begin(), reports_.end(), [=](const Report& one) { return one.rank == job_rank; });
  }

 private:
  void take() noexcept;
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
