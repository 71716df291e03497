// SPDX-License-Identifier: BSD-3-Clause
// What the engine knows of a kind of wait. Each kind is one object in waits.cc.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/comm/comm.h"

namespace ibcoll {

struct WaitKind {
  // True when the wait is over.
  bool (*satisfied)(Exchange& x, const Wait& wait);
  // "waits for data of rank 6"
  std::string (*describe)(const Exchange& x, const Wait& wait);
  // Calls ask(to, rank) for the team ranks that the wait is for.
  void (*awaited)(const Exchange& x, const Wait& wait, void (*ask)(void* to, int rank), void* to);
  // `peer` has completed the collective, and no message is under way between the two: fails the team when the wait is
  // for it.
  void (*ended)(Exchange& x, const Wait& wait, int peer);
  // Of a wait for what shared memory holds: the bell of the local rank that it is for. nullptr: a wait for messages.
  int (*bell)(const Exchange& x, const Wait& wait);
};

// Of a wait in the node window: it is for a step to begin, not for what others publish.
inline bool awaits_step(const Wait& wait) noexcept {
  return wait.kind == &waits::kStep || wait.kind == &waits::kSoleStep || wait.kind == &waits::kOwnStep;
}

}  // namespace ibcoll
