// SPDX-License-Identifier: BSD-3-Clause
// A random program: teams split, used and freed, requests made, started, completed and freed, blocking calls between
// them. All ranks draw from one source what they do to a team, and each from its own when it does what only concerns
// itself: which of its requests it completes next and how, and how long it tarries.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "tests/multiprocess/persistent_call.h"
#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {

class RandomProgram {
 public:
  RandomProgram(const Rank& self, uint64_t seed);
  // To its end, or until a call goes wrong or tells of a death.
  void run();
  // After a death was noticed: completes what is in flight, overwrites all buffers, frees requests and teams.
  void give_up();
  // No rank has written to the buffers since.
  bool untouched() const;

 private:
  class Random {
   public:
    explicit Random(uint64_t seed) : engine_(seed) {}
    // 0 to bound - 1.
    uint64_t below(uint64_t bound) { return engine_() % bound; }
    bool one_in(uint64_t times) { return below(times) == 0; }

   private:
    std::mt19937_64 engine_;
  };
  // The teams that one split has made; each rank is in one of them, or in none. The first entry is the world.
  struct Teams {
    uint64_t number = 0;
    TeamOwner mine;
  };
  struct Request {
    uint64_t teams;
    std::unique_ptr<PersistentCall> call;  // nullptr: this rank is in no such team, or its algorithm does not apply
    uint64_t round = 0;
    bool in_flight = false;
  };

  void step();
  void split_one();
  void free_team(size_t index);
  CallParams draw();
  void fit(CallParams& params, ibcoll_team_t team) const;
  void make_request(size_t index);
  void free_request(size_t index);
  void start(Request& request);
  void complete(Request& request);
  void call(size_t index);
  void tarry();
  ibcoll_team_t team(size_t index) const { return index == 0 ? self_.world : teams_[index].mine.get(); }

  const Rank& self_;
  Random common_, own_;
  std::vector<Teams> teams_;
  std::vector<std::unique_ptr<Request>> requests_;
  std::vector<std::unique_ptr<CheckedCall>> failed_;  // blocking calls
  uint64_t teams_made_ = 0;
  uint64_t calls_ = 0;  // of any team
  int root_ = 0;        // the one drawn last, for a team of any size
};

}  // namespace ibcoll::multiprocess
