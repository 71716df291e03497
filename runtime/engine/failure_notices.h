// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of a team notify each other of its failure.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/base/buffer.h"
#include "runtime/engine/calls_in_flight.h"
#include "runtime/engine/team_health.h"
#include "runtime/engine/team_links.h"

namespace ibcoll {

class FailureNotices {
 public:
  // All outlive it.
  FailureNotices(Engine& engine, const CallsInFlight& calls, TeamHealth& health, TeamLinks& links) noexcept
      : engine_(engine), calls_(calls), health_(health), links_(links) {}

  // A NoteKind::kAbort has come.
  void on_abort(int peer, const Note& note, ConstBytes payload) noexcept;
  // A notice of a later call is kept until the calls before it have ended here. A call has ended, or time has passed.
  void look_at_kept() noexcept {
    if (kept_) [[unlikely]]
      take_kept_in_time();
  }

  // False: not now. A rank that is not notified in time asks by a probe. A rank that opens no connections any more, or
  // cannot reach some rank, may not be able to notify all.
  bool send(int peer) noexcept;
  // Tries to notify each rank that can be reached and was not notified yet, once.
  void send_pending() noexcept;

 private:
  struct Kept {
    int peer;
    Note note;
    std::vector<std::byte> text;
    Time since;
  };
  void learn(int peer, const Note& note, ConstBytes payload) noexcept;
  bool keep(int peer, const Note& note, ConstBytes payload) noexcept;
  void take_kept_in_time() noexcept;

  Engine& engine_;
  const CallsInFlight& calls_;
  TeamHealth& health_;
  TeamLinks& links_;
  std::unique_ptr<Kept> kept_;
};

}  // namespace ibcoll
