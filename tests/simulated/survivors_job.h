// SPDX-License-Identifier: BSD-3-Clause
// A simulated job under a launcher that lets survivors go on: ranks call collectives, agree, shrink and leave by the code of
// the library, and the launcher decides by that of ibcoll_run. What comes from it and goes to it takes random times.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bootstrap/bootstrap.h"
#include "runtime/context/agreement.h"
#include "runtime/context/progress.h"
#include "runtime/context/team_handle.h"
#include "runtime/context/teams.h"
#include "runtime/sim/network.h"
#include "tests/simulated/collective_case.h"
#include "tests/simulated/fiber.h"
#include "tools/ibcoll_run/ballots.h"

namespace ibcoll {

struct SurvivorsParams {
  uint64_t seed = 1;
  int p = 4;
  std::vector<uint64_t> deaths;  // each at this event of the run, of a random rank; the last living one stays
  uint64_t burial = 0;           // at this event a rank counts another one, which lives, as dead; 0: none
  bool late = false;             // a rank comes to an agreement after the deadline of the others
  bool data = true;              // false: only barriers
  int phases = 4;
};

struct SurvivorsResult {
  std::string failure;  // "": all that must hold does
  uint64_t events = 0;
  int dead = 0;
  int timeouts = 0;  // ballots that ended so
  int shrinks = 0;
};

class SurvivorsJob {
 public:
  explicit SurvivorsJob(const SurvivorsParams& params);
  ~SurvivorsJob();
  SurvivorsResult run();

 private:
  class RankBootstrap;
  using Key = Arbiter::Key;
  struct Rank {
    std::unique_ptr<Bootstrap> bootstrap;
    RankBootstrap* launcher = nullptr;  // the same
    Progress progress;
    std::unique_ptr<Agreement> agreement;
    ContextLock lock;
    std::vector<std::unique_ptr<TeamHandle>> teams;  // the first one is the world
    std::vector<std::unique_ptr<Request>> requests;
    std::unique_ptr<Fiber> fiber;
    Time from = 0, to = 0;  // the last messages to the launcher, and from it
    Time alarm = 0;         // when it wakes
  };
  struct Call {
    std::unique_ptr<CollectiveCase> buffers;
    const Algorithm* algorithm = nullptr;
    std::set<int> over;  // places in the team, of ranks whose buffers may not change any more
  };

  // ---- the ranks
  void live(int rank);
  void call_collectives_and_agree(int rank, ContextLock::Guard& guard);
  bool work(int rank, TeamHandle& team);
  void revoke(Rank& self, TeamHandle& team);
  Result<TeamHandle*> make(int rank, const std::vector<int>& jobs, int self, uint64_t epoch,
                           const Teams::Gather& gather);
  Call& call_of(const TeamHandle& team, int number);
  void sleep(int rank, Time time);
  void pause_for(int rank, Time time);
  bool lives(int rank) const { return network_.alive(rank); }

  // ---- the launcher
  void to_launcher(int rank, std::function<void()> arrives);
  void to_rank(int rank, std::function<void()> arrives);
  void announce(const run::Ballots::Decisions& decisions);
  void accuse(int accuser, int accused);
  void kill(int rank);
  void check(const Arbiter::Verdict& verdict);

  // ---- time
  void event(int rank);
  void tick();
  bool all_ended() const;
  void fail(std::string text);
  Time delay(Time most) { return 1 + random_.below(most); }

  SurvivorsParams params_;
  sim::Random random_;
  sim::Network network_;
  std::vector<Event> events_of_poll_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::multimap<Time, std::function<void()>> messages_;
  run::Ballots ballots_;
  std::map<Key, std::set<int>> voters_;
  std::map<uint64_t, std::shared_ptr<const Placement>> placements_;  // by epoch
  std::map<std::pair<uint64_t, int>, Call> calls_;                   // by epoch and number
  std::map<std::pair<uint64_t, uint32_t>, std::string> answers_;     // to agreements, by epoch and round
  std::set<int> left_;
  int late_rank_ = -1;
  uint64_t events_ = 0;
  Time ticked_ = 0;
  SurvivorsResult result_;
};

}  // namespace ibcoll
