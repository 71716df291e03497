// SPDX-License-Identifier: BSD-3-Clause
// A call that is one step of the node window, as three things: what a rank writes, which ranks it awaits, and what it
// does when these have published. Its task does them one after the other (run_one_step). A call whose peers are there
// already does them without a task (Team::run_short in runtime/engine/team.h).
#pragma once

#include <cstdint>

#include "runtime/collectives/framework/args.h"
#include "runtime/comm/comm.h"

namespace ibcoll {

// A size that two ranks do not agree upon; rank -1: there is none.
struct Difference {
  int rank = -1;  // of the team
  uint64_t theirs = 0;
  uint64_t mine = 0;
  explicit operator bool() const noexcept { return rank >= 0; }
};

struct OneStep {
  // kNone: the call is something else. kNothing: no byte moves. The others: of next_step(), next_sole_step(),
  // next_own_step().
  enum class Kind : uint8_t { kNone, kNothing, kAll, kSole, kOwn };

  Kind kind = Kind::kNone;
  int first = 0, end = 0;  // local ranks that are awaited: from first to end - 1, but for this one
  uint64_t bytes = 0;      // which the step begins with
  // Ranks read `args` at the time of the call: buffers may be others than those that the step was made for.
  void (*write)(NodeWindow& window, const Args& args) = nullptr;  // nullptr: this rank writes nothing
  // nullptr: nor does it do anything then. If it returns a difference, it runs a second time, in the task that goes on:
  // run_one_step(), where the call fails; or `rest`, where others may have published that there is more to do.
  Difference (*finish)(NodeWindow& window, const Args& args) = nullptr;
  Task (*rest)(Comm& comm, Args args) = nullptr;
  // `finish` writes what this rank publishes, out of what it awaits: it publishes after that.
  bool publishes_last = false;

  explicit operator bool() const noexcept { return kind != Kind::kNone; }
  bool awaits_all(const NodeWindow& window) const noexcept { return first == 0 && end == window.size(); }
  // Begins the step. False: it cannot begin yet.
  bool try_begin(WindowSteps& steps) const noexcept {
    return kind == Kind::kAll    ? steps.try_next(bytes)
           : kind == Kind::kSole ? steps.try_next_sole(bytes)
                                 : steps.try_next_own(bytes);
  }
};

// The step of a call on a team whose ranks share a node. On some ranks a call may be one step, and on others a task of
// its algorithm: what they write and await is the same.
using FindOneStep = OneStep (*)(const Args& args, const NodeWindow& window);

// `published`: this rank has written and published already.
Task run_one_step(Comm& c, Args args, OneStep step, bool published = false);

}  // namespace ibcoll
