// SPDX-License-Identifier: BSD-3-Clause
// The engine's rules for each kind of wait.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/comm/comm_backend.h"
#include "runtime/comm/node_window.h"

namespace ibcoll {

class Exchange;

struct WaitRule {
  // True when the wait is over.
  bool (*satisfied)(Exchange& x, const Wait& wait);
  // "waits for data of rank 6"
  std::string (*describe)(const Exchange& x, const Wait& wait);
  // Calls ask(to, rank) for the team ranks that the wait is for.
  void (*awaited)(const Exchange& x, const Wait& wait, void (*ask)(void* to, int rank), void* to);
  // `peer` has completed the collective, and no message is under way between the two: fails the team when the wait is
  // for it.
  void (*ended)(Exchange& x, const Wait& wait, int peer);
  // The bell of the local rank that a wait is for, if it has to be polled. Else nullptr.
  int (*bell)(const Exchange& x, const Wait& wait);
};

// In the order of WaitKind.
extern const WaitRule kWaitRules[];
inline const WaitRule& rule_of(const Wait& wait) noexcept { return kWaitRules[static_cast<size_t>(wait.kind)]; }

// The wait, in the node window, is for a step to begin, not for what others publish.
constexpr bool awaits_step(const Wait& wait) noexcept {
  return wait.kind == WaitKind::kStep || wait.kind == WaitKind::kSoleStep || wait.kind == WaitKind::kOwnStep;
}

// The wait, in the node window, is for a part of a step.
constexpr bool awaits_part(const Wait& wait) noexcept {
  return wait.kind == WaitKind::kPublished && wait.value != NodeWindow::kWhole;
}

}  // namespace ibcoll
