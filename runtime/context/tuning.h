// SPDX-License-Identifier: BSD-3-Clause
// The file of choices that ibcoll_tune has timed: for each layout of a team and class of calls, the fastest algorithm. It
// names the machine, transport and layout of the job in which they were timed; other jobs ignore it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/collectives/framework/algorithm.h"
#include "runtime/context/call_class.h"

namespace ibcoll {

// The layout of the ranks of a team.
struct TeamLayout {
  int ranks = 1;
  int nodes = 1;
  int fewest_local = 1;
  int most_local = 1;
  bool in_rank_order = true;
  bool operator==(const TeamLayout&) const = default;
};
TeamLayout layout_of(const Shape& team) noexcept;

class Tuning {
 public:
  // All members must be equal for a file to be used.
  struct Identity {
    std::string version;    // of ibcoll
    std::string hardware;   // of the node of rank 0
    std::string transport;  // "shm", or the name of the network's
    std::string layout;     // "16 ranks on 4 nodes, 8 a core"
    bool operator==(const Identity&) const = default;
    Json json() const;
  };
  struct Entry {
    TeamLayout team;
    CallClass calls;
    std::string algorithm;  // without its parameter
    uint64_t trials = 0;    // timed calls by which it was chosen
    double us = 0;          // its time
  };
  static constexpr size_t kMostBytes = 1 << 20;  // of a file

  // CONFIG: the text is damaged, or of another identity (nullptr: any is accepted); says what is wrong.
  static Result<Tuning> parse(std::string_view text, const Identity* mine);
  // nullptr: there is no choice for these calls.
  const Entry* find(const TeamLayout& team, const CallClass& calls) const noexcept;
  size_t size() const noexcept { return entries_.size(); }
  // How a file names these calls.
  static Json key(const TeamLayout& team, const CallClass& calls);

 private:
  std::vector<Entry> entries_;
};

// Processor and number of CPUs of this machine.
std::string hardware_identity();
// The path of the file by the value of IBCOLL_TUNING: the value itself, or where that is empty a file in the user's
// cache ($XDG_CACHE_HOME/ibcoll, else ~/.cache/ibcoll) whose name depends on the identity. "": off, or there is no such
// place.
std::string tuning_path(std::string_view setting, const Tuning::Identity& mine);
// "": there is no such file. SYSTEM: it cannot be read, or is longer than kMostBytes.
Result<std::string> read_tuning(const std::string& path);

}  // namespace ibcoll
