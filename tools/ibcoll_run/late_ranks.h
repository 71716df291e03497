// SPDX-License-Identifier: BSD-3-Clause
// Which ranks are late, from what the ranks print of their collectives on request (Ctrl-\). A rank's line ends with
//   [call of team 1 (8 ranks, the first is 0) #12 by rank 3 for 4.2 s, awaits 0,5]
// in ranks of the job. The text between "team" and # is the same on all ranks of a team, and on no other rank. A rank that others await, and that is not in the call, is late.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ibcoll::run {

class LateRanks {
 public:
  // Whole lines of a rank's standard error. Lines that are no reports are skipped.
  void read(std::string_view lines);
  // One line per call that a rank is late for: "rank 2 is late for allreduce (ring) #12: ranks 0,1,3 wait since 4.2
  // s".
  std::vector<std::string> summary() const;

 private:
  struct Call {
    std::string name;
    double seconds = 0;  // since the first of them waits
    std::set<int> inside;
    std::set<int> awaited;
  };
  void read_line(const std::string& line);
  std::map<std::pair<std::string, uint32_t>, Call> calls_;  // by team and number
};

}  // namespace ibcoll::run
