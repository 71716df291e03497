// SPDX-License-Identifier: BSD-3-Clause
// Plays a recording on a simulated machine: each rank makes its calls in their order, a call its measured gap after the
// *simulated* end of what the rank did before.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/ibcoll_sim/calls.h"
#include "tools/ibcoll_sim/job.h"
#include "tools/ibcoll_sim/replay/choices.h"
#include "tools/ibcoll_sim/watch.h"

namespace ibcoll::simulator {

class Player {
 public:
  // `calls` and `choices` outlive it. `expected_us`: of virtual time; 0: not known. `speedup`: of computation.
  Player(const KnownCalls& calls, const Choices& choices, double speedup, double expected_us);
  ~Player();
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  // Until all ranks have ended.
  Status run();
  // As Recording::moments, from the beginning of the program on.
  const std::vector<Moments>& moments() const { return moments_; }
  std::vector<Moments> take_moments() { return std::move(moments_); }
  // "ring" of a kind of call at a site. After run().
  std::string algorithm(uint32_t kind, uint32_t site) const;
  uint64_t events() const { return job_->network().counters().events; }

 private:
  // A kind of call with its algorithm.
  struct Plan {
    uint32_t kind = 0;
    Choice choice;
    uint32_t calls = 0;
    oracle::CallParams params;
    BlockList known;
    int team = 0;  // of the job
  };
  struct Entry {
    PairLists pairs;
    std::unique_ptr<Request> request;
  };
  // The requests of a plan on a team rank.
  struct Pool {
    uint32_t left = 0;  // calls that are still to be started
    std::vector<std::unique_ptr<Entry>> idle;
  };
  struct Rank {
    size_t next = 0;
    Time free_at = 0;              // when the step before ended
    std::vector<uint32_t> flying;  // nonblocking calls that are not complete
    uint32_t blocks_on = kNothing;
  };
  static constexpr uint32_t kNothing = UINT32_MAX;

  Status prepare();
  Result<uint32_t> plan_of(uint32_t kind, uint32_t site);
  void advance(int rank);
  void start(int rank, const Step& step);
  void ended(int rank, const Step& step, Entry& entry);
  Result<std::unique_ptr<Entry>> take(const Step& step);
  uint64_t pool_of(const Step& step) const {
    return (static_cast<uint64_t>(call_plans_[step.call]) << 32) | step.member;
  }
  Moments& moments_of(const Step& step) { return moments_[recording_.calls[step.call].first + step.member]; }
  void fail(const Status& status) {
    if (failure_.ok()) failure_ = status;
  }

  const KnownCalls& known_;
  const Recording& recording_;
  const Choices& choices_;
  double speedup_;
  Watch watch_;
  std::unique_ptr<Addresses> addresses_;
  uint64_t send_bytes_ = 0;
  std::unique_ptr<SimJob> job_;
  std::vector<int> teams_;  // number in the job, by team; -1: not made yet
  std::vector<Plan> plans_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> plan_numbers_;  // by kind and site
  std::vector<uint32_t> call_plans_;                                // by call
  std::unordered_map<uint64_t, Pool> pools_;
  std::unordered_map<Entry*, std::unique_ptr<Entry>> flying_;
  std::vector<Rank> ranks_;
  std::vector<Moments> moments_;
  Status failure_;
};

}  // namespace ibcoll::simulator
