// SPDX-License-Identifier: BSD-3-Clause
// The processors of simulated ranks: what the running rank copies and combines takes virtual time, and the flags that
// it sets are seen when it has come to them. One at a time in a process.
#pragma once

#include "runtime/machine/simulation.h"
#include "runtime/sim/network.h"

namespace ibcoll::sim {

class Machine final : public ibcoll::Simulation {
 public:
  explicit Machine(Network& network) : network_(network) { ibcoll::Simulation::current = this; }
  ~Machine() override { ibcoll::Simulation::current = nullptr; }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // The rank that works from now on.
  void run_as(int rank) { running_ = rank; }

  bool works(const void* to, const void* from, uint64_t bytes) noexcept override;
  bool lands(const void* to, const void* from) noexcept override {
    return network_.is_nothing(to) || network_.is_nothing(from);
  }
  void sets(std::atomic<uint64_t>& flag, uint64_t value) noexcept override {
    network_.set_flag(running_, flag, value, network_.params().flag_ns);
  }

 private:
  Network& network_;
  int running_ = 0;
};

}  // namespace ibcoll::sim
