// SPDX-License-Identifier: BSD-3-Clause
// How ranks find out that their calls differ. A rank that waits long, or whose peer's call seems to differ, sends that
// peer its last calls. The peer looks for the first one that differs from its own, fails with an error that names both,
// and answers with its own, so that the asking rank does the same.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/buffer.h"
#include "runtime/engine/calls_in_flight.h"
#include "runtime/engine/team_health.h"
#include "runtime/engine/team_links.h"

namespace ibcoll {

// The bytes of a call that only two ranks know, as the sender of this sees them.
struct PairBytes {
  uint64_t sent = 0;
  uint64_t received = 0;
};

// Those between this rank and the peer; 0 and 0 where the signature covers all sizes.
PairBytes pair_bytes(const Args& args, int rank, int peer) noexcept;

class CallQuestions {
 public:
  // All outlive it.
  CallQuestions(Engine& engine, const TeamMembers& members, const CallsInFlight& calls, TeamHealth& health,
                TeamLinks& links) noexcept
      : engine_(engine), members_(members), calls_(calls), health_(health), links_(links) {}

  // The index of a NoteKind::kProbe.
  enum class Probe : uint16_t { kWaits, kSuspects, kAnswers };
  static bool asks(const Note& note) noexcept { return static_cast<Probe>(note.index) != Probe::kAnswers; }

  // Call `op` waits for the peer: asks it. False: not now.
  bool ask_awaited(int peer, uint32_t op) noexcept { return send_calls(peer, op, Probe::kWaits); }
  // The peer's call `op` seems to differ: fails the team with `status` unless the peer's answer names both calls.
  void suspect(int peer, uint32_t op, Status status) noexcept;
  // `what` of call `op` is `theirs` at the peer and `mine` here.
  void mismatch(int peer, uint32_t op, uint64_t theirs, uint64_t mine, const char* what) noexcept;
  // The digest of the peer's call, or of its calls so far, is another one.
  void other_call(int peer, uint32_t op) noexcept;
  // A NoteKind::kProbe has come, whose team has not certainly failed.
  void on_probe(int peer, const Note& note, ConstBytes payload) noexcept;
  // Under suspicion: a question or an answer may have found no room to leave.
  void repeat() noexcept;

 private:
  static constexpr uint32_t kAskedCalls = 8;

  bool send_calls(int peer, uint32_t op, Probe probe) noexcept;
  bool find_other_call(int peer, ConstBytes records, Probe probe, uint32_t asked_op) noexcept;
  std::string not_kept(uint32_t op) const noexcept;
  void note_missing_record(int peer) noexcept;
  void compare_bytes(int peer, const Request& request, ConstBytes payload) noexcept;
  void ask() noexcept;
  void answer() noexcept;

  Engine& engine_;
  const TeamMembers& members_;
  const CallsInFlight& calls_;
  TeamHealth& health_;
  TeamLinks& links_;
  int suspected_peer_ = -1;
  uint32_t suspected_op_ = 0;
  Time ask_at_ = 0;
  int answer_to_ = -1;  // has no answer of this rank yet
  uint32_t answer_op_ = 0;
};

}  // namespace ibcoll
