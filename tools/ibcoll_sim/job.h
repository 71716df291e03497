// SPDX-License-Identifier: BSD-3-Clause
// A job of p ranks in one process: an Engine per rank over the simulated network, teams with their node windows, and a
// loop that lets a random rank make a pass of progress, or advances the time, until all ranks have completed their
// steps.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/engine/engine.h"
#include "runtime/engine/request.h"
#include "runtime/engine/team.h"
#include "runtime/sim/machine.h"
#include "runtime/sim/network.h"
#include "runtime/sim/node_memory.h"

namespace ibcoll {

class SimJob;

struct SimJobParams {
  sim::Params network;
  EngineLimits limits;
  sim::Reads reads = sim::Reads::kAll;
  bool crowded = false;  // ranks outnumber cores
  NodeWindow::Limits blocks{32768, 262144, 1 << 20};
  uint64_t window_area_bytes = 4096;        // of each rank in a team's node window; 0: teams have no window
  uint64_t node_bytes = uint64_t{1} << 30;  // memory that the ranks of a node can share
  // On average, every `lazy`-th step of the loop advances the time although a rank could make progress: that rank polls
  // late. 0: never.
  uint64_t lazy = 8;
  Time deadline_ns = 60'000'000'000;     // of the whole run, in virtual time
  uint64_t most_passes = 10'000'000;     // of the whole run: ends ranks that are busy for ever
  std::function<Status(SimJob&)> watch;  // called now and then; a run ends where it fails
};

// The next step of one rank: to start a request. Both functions may add steps.
struct SimStep {
  Request* request = nullptr;
  Time delay_ns = 0;      // since the step before was started, or completed
  bool after_all = true;  // only when all earlier requests of this rank are complete
  std::function<void()> before_start;
  std::function<void(const Status&)> completed;  // the request may be destroyed in it
};

class SimJob {
 public:
  explicit SimJob(SimJobParams params);
  ~SimJob();
  SimJob(const SimJob&) = delete;
  SimJob& operator=(const SimJob&) = delete;

  int size() const { return network_.size(); }
  sim::Network& network() { return network_; }
  sim::Nodes& nodes() { return nodes_; }
  Engine& engine(int rank) { return *ranks_[static_cast<size_t>(rank)].engine; }

  // A team of these job ranks (no duplicates), made on all of them at once; returns its number.
  int make_team(const std::vector<int>& jobs);
  // The same of all ranks.
  int make_world();
  int team_size(int team) const { return placement(team).size(); }
  int job_rank(int team, int rank) const { return placement(team).job_rank(rank); }
  // Virtual time at which the rank has done all the work of its passes.
  Time time_of(int rank) const { return std::max(network_.now(), network_.busy_until(rank)); }
  Team& team(int team, int rank) { return *teams_[static_cast<size_t>(team)].members[static_cast<size_t>(rank)]; }
  const Placement& placement(int team) const { return *teams_[static_cast<size_t>(team)].placement; }

  // Steps of one job rank are done in the order in which they were added.
  void add_step(int job_rank, SimStep step);

  // Until every live rank has completed its steps. Otherwise the text says what each rank waits for.
  Status run();
  // Delivers what is still in flight, while all live ranks make progress.
  void drain();
  // Passes of progress of all ranks. Two runs of one seed make the same number.
  uint64_t passes() const { return passes_; }

 private:
  struct Rank {
    std::unique_ptr<Engine> engine;
    std::vector<SimStep> steps;  // from `next` on: to be started
    size_t next = 0;
    bool armed = false;  // it starts at `due`
    Time due = 0;
    Time resumes = 0;             // the last time for which it was woken because it was busy
    std::vector<SimStep> flying;  // in flight
    bool finished() const { return next == steps.size() && flying.empty(); }
  };
  struct TeamOfAll {
    std::shared_ptr<const Placement> placement;
    std::vector<std::unique_ptr<Team>> members;
  };

  Status loop();
  Status stuck();  // what each rank waits for
  void bury_dead();
  std::unique_ptr<NodeWindow> make_window(const Placement& placement, int rank, std::vector<uint64_t>& offsets);
  void pass(int rank);
  bool start_due(int rank);
  bool collect_completed(int rank);
  void arm(int rank);
  bool wake_neighbours();
  void tick();
  void touch(int node);
  bool all_finished();
  void schedule_pass(int rank);
  std::string describe();

  SimJobParams params_;
  std::vector<Event> events_;  // of the rank that polls
  sim::Network network_;
  sim::Nodes nodes_;
  sim::Random random_;
  std::unique_ptr<sim::Machine> machine_;  // without chance
  std::vector<Rank> ranks_;
  std::vector<TeamOfAll> teams_;
  std::vector<std::vector<int>> node_ranks_;
  std::vector<bool> touched_;  // nodes whose memory may have changed since the last pass of its ranks
  std::vector<int> touched_nodes_;
  bool failed_ = false;  // a request has ended with an error
  uint64_t passes_ = 0;
  int first_unfinished_ = 0;  // all before it are finished or dead
};

}  // namespace ibcoll
