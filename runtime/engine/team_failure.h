// SPDX-License-Identifier: BSD-3-Clause
// The state of the failure of a team on this rank, and which ranks it still has to notify.
//
//   from                           transition                to
//   kHealthy, kDeathSeen           fail                      kNotifying  the cause is certain: this rank's own
//   kHealthy                       suspect                   kSuspected  another rank may know better, or have died
//   kSuspected                     explain                   kSuspected  the peer has reported its own call
//   kHealthy, kSuspected           see_death                 kDeathSeen  a death explains a suspicion
//   kDeathSeen                     explain_death             kDeathSeen  the launcher knows how that rank ended
//   kHealthy, kSuspected,          learn                     kNotified   another rank was certain and notifies the rest
//     kDeathSeen                   learn, to pass it on      kNotifying  ... and may not reach all of them
//   kSuspected, kDeathSeen         end_suspicion,            kNotifying  no rank knew better
//                                  cut_suspicion
//   kNotifying                     notify                    kNotified   all ranks are notified, or it gives up trying
//
// Any other transition changes nothing: the first certain cause counts, and under suspicion only a better one.
#pragma once

#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/transport/transport.h"

namespace ibcoll {

class TeamFailure {
 public:
  enum class State { kHealthy, kSuspected, kDeathSeen, kNotifying, kNotified };
  static constexpr int kMostTries = 10'000;  // of notify()

  TeamFailure(int rank, int size) noexcept : rank_(rank), size_(size) {}

  State state() const noexcept { return state_; }
  bool healthy() const noexcept { return state_ == State::kHealthy; }
  bool uncertain() const noexcept { return state_ == State::kSuspected || state_ == State::kDeathSeen; }
  bool certain() const noexcept { return state_ == State::kNotifying || state_ == State::kNotified; }
  // Ok while the team is healthy.
  const Status& status() const noexcept { return status_; }
  // When the last of the transitions that take `now` took place. end_suspicion() is one of them, cut_suspicion() is
  // not.
  Time since() const noexcept { return since_; }

  // `status` is an error. False: nothing has changed.
  bool fail(Status status, Time now) noexcept;
  bool suspect(Status status, Time now) noexcept;
  // Changes neither the end of the suspicion nor a first explanation.
  bool explain(Status status) noexcept;
  bool see_death(int peer, Status status, Time now) noexcept;
  bool explained() const noexcept { return explained_; }
  // Returns the rank of the team whose death is the cause. This rank has noticed that death, or another rank has reported
  // it. -1: the cause is no death, or no rank is known.
  int dead_peer() const noexcept { return dead_peer_; }
  // Explains the death of the peer whose death was seen. Does not change the end of the suspicion.
  void explain_death(int peer, Status status) noexcept;
  bool learn(Status status, Time now, bool pass_on = false, int dead_peer = -1) noexcept;
  // Ends a suspicion that has lasted long enough.
  bool end_suspicion(Time now) noexcept;
  // Ends a suspicion at once: the team is being freed.
  void cut_suspicion() noexcept;

  // Once the failure is certain: `done(rank)` is called for each rank that is not notified yet. It returns true when
  // that rank need not be tried again. The ranks that are left when the tries are used up are still tried in later
  // calls.
  template <typename Done>
  void notify(Done done) noexcept {
    if (!certain()) return;
    std::erase_if(pending_, done);
    if (pending_.empty() || ++tries_ >= kMostTries) state_ = State::kNotified;
  }
  bool all_notified() const noexcept { return pending_.empty(); }

  // The status, for a call of the program that ends with it or is refused for it.
  const Status& report() noexcept {
    reported_ |= !healthy();
    return status_;
  }
  // The program has seen the failure.
  bool reported() const noexcept { return reported_; }

 private:
  void list_pending() noexcept;
  bool enter(State state, Status status, Time now, int dead_peer = -1) noexcept;

  int rank_;
  int size_;
  State state_ = State::kHealthy;
  bool reported_ = false;
  bool explained_ = false;
  int dead_peer_ = -1;
  int tries_ = 0;
  Status status_;
  Time since_ = 0;
  Time suspicion_ends_ = 0;
  std::vector<int> pending_;  // ranks of the team that do not know of the failure yet
};

}  // namespace ibcoll
