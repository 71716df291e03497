// SPDX-License-Identifier: BSD-3-Clause
// A group of ranks and the collectives in flight on it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/comm/node_window.h"
#include "runtime/comm/placement.h"
#include "runtime/engine/call_record.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/exchange.h"
#include "runtime/engine/team_credit.h"
#include "runtime/engine/team_failure.h"

namespace ibcoll {

class Request;

class Team {
 public:
  // `epoch` differs from that of every other team of the job and is the same on all its ranks. `window`: nullptr when
  // no two ranks of the team share a node.
  Team(Engine& engine, uint64_t epoch, Placement placement, int rank, std::unique_ptr<NodeWindow> window)
      : Team(engine, epoch, std::make_shared<const Placement>(std::move(placement)), rank, std::move(window)) {}
  // Simulated ranks are too many for a placement each.
  Team(Engine& engine, uint64_t epoch, std::shared_ptr<const Placement> placement, int rank,
       std::unique_ptr<NodeWindow> window);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  Engine& engine() noexcept { return engine_; }
  uint64_t epoch() const noexcept { return epoch_; }
  // For people. Teams of one number have no rank in common; the first team of a job has number 1.
  uint32_t number() const noexcept { return number_; }
  void set_number(uint32_t number) noexcept { number_ = number; }
  int rank() const noexcept { return rank_; }
  int size() const noexcept { return placement_->size(); }
  const Placement& placement() const noexcept { return *placement_; }
  NodeWindow* window() noexcept { return window_.get(); }
  int job_rank(int rank) const noexcept { return placement_->job_rank(rank); }
  int team_rank(int job_rank) const noexcept;  // -1: not a member

  // ---- collectives in flight

  // Gives the request the next sequence number and runs it up to its first wait. False: memory for that is short, and
  // the team has failed.
  bool start(Request& request) noexcept;
  // Ok, or why the team accepts no collectives any more.
  const Status& failure() const noexcept { return failure_.status(); }
  // False while the failure is uncertain: a call that is started then ends with the cause that is found.
  bool refuses() const noexcept { return failure_.certain(); }
  // The failure, for a call that is refused.
  const Status& refusal() noexcept {
    last_ended_ = failed_op_ != 0 && is_after(next_op_, failed_op_) ? Ended::kRefused : Ended::kAsFailed;
    return failure_.report();
  }
  // The last call that ended with the failure: it may be the one that failed the team, as far as is known; or a later
  // one, which was in flight or was not even started.
  enum class Ended { kAsFailed, kInFlight, kRefused };
  Ended last_ended() const noexcept { return last_ended_; }
  // This rank makes no call where the others may have made their next one: ends that there.
  void abort(Status status) noexcept;
  // A call of the program has failed, or was refused, for this team's failure.
  bool failure_reported() const noexcept { return failure_.reported(); }
  // The failure was sent to all other ranks, or sending was tried kMostTries times.
  bool failure_is_notified() const noexcept { return failure_.state() == TeamFailure::State::kNotified; }
  // Ends everything in flight on all ranks of the team with this error.
  void fail(Status status) noexcept;
  Time failed_at() const noexcept { return failure_.since(); }
  // As fail(), where a peer may know a better cause, or a death may explain it: this rank waits a little for that, and
  // reports it instead.
  void suspect(Status status) noexcept;
  // The same of a peer whose call `op` seems to differ: this rank asks that peer, whose answer names both calls.
  void suspect_call(int peer, uint32_t op, Status status) noexcept;
  int requests() const noexcept { return requests_; }
  int in_flight() const noexcept;
  // A request of the team is made. Takes the memory that its starts need, or throws std::bad_alloc.
  void adopt() {
    if (window_) window_->queue().reserve(requests_ + 1);
    ++requests_;
  }
  void disown() noexcept { --requests_; }
  uint32_t children() noexcept { return ++children_; }

  // ---- for the engine

  // The note that notifies another rank of the failure of a team. Its index says whether the sender can notify all
  // others, or the receiver has to pass it on.
  enum AbortIndex : uint16_t { kNotifiesAll, kPassOn };
  static Note abort_note(uint64_t epoch, const Status& failure, uint32_t completed, uint32_t failed_op = 0) noexcept;
  static ConstBytes abort_text(const Status& failure) noexcept;

  void on_note(int peer, const Note& note, ConstBytes payload) noexcept;
  void on_peer_failed(int peer, std::string_view why) noexcept;
  // A better reason for that, which counts unless ranks were notified of the other one.
  void explain_death(int peer, std::string_view how) noexcept;
  // After a failure: notifies the other ranks and ends what is in flight. False while there is more to do.
  bool end_requests() noexcept;
  void finish(Request& request) noexcept;
  Request& request_of(const Exchange& exchange) noexcept { return *active_[exchange.op() & (active_.size() - 1)]; }
  // Reports completed collectives to peers that wait for room to run ahead. False: some could not be sent.
  bool report_completed() noexcept;
  // The next collective is the last one. A rank that has completed it may be gone, and needs no credit any more.
  void part() noexcept { parting_ = true; }
  // False: ranks may be leaving. A rank that is not connected with this one learns of a failure from others.
  void set_connects(bool connects) noexcept { connects_ = connects; }
  void check(Time now) noexcept;
  void check_own_line() noexcept;
  std::string describe() const;

  // ---- for Exchange

  Transport& transport(int rank) noexcept { return engine_.transport(job_rank(rank)); }
  bool send(int peer, const Note& note, ConstBytes payload) noexcept;
  bool send_abort(int peer) noexcept;
  void find_failed_local(Request& request) noexcept;
  void notify_pending() noexcept;
  void want_back() noexcept;
  // A region without a key where memory for it is short: data then come in messages.
  RemoteRegion expose(int peer, Bytes memory) noexcept;
  PutResult put(int peer, const RemoteRegion& to, ConstBytes from, const Note& note, uint64_t token) noexcept;
  uint32_t completed() const noexcept { return completed_; }
  TeamCredit& credit() noexcept { return credit_; }
  // For a message that credit().may_send() has refused. To be repeated as that is.
  void ask_for_credit(int peer) noexcept;
  // "allgatherv (ring) #12"
  std::string describe_call(uint32_t op) const noexcept;
  // Sends a peer the calls of this rank up to `op`: it waits for the peer, or the peer's call seems to differ. The peer
  // looks for the first that differs from its own, fails with an error that names both, and answers with its own, so that
  // this rank does the same. False: not now.
  enum class Probe : uint16_t { kWaits, kSuspects, kAnswers };
  bool send_calls(int peer, uint32_t op, Probe probe) noexcept;

 private:
  enum CompletedIndex : uint16_t { kReturnsCredit, kWantsCredit };
  Note completed_note(CompletedIndex index) const noexcept {
    return {epoch_, 0, 0, 0, completed_, static_cast<uint16_t>(NoteKind::kCompleted), index};
  }
  Request* active(uint32_t op) const noexcept;
  bool make_room(uint32_t op) noexcept;
  void deliver_early(Request& request) noexcept;
  void keep_early(int peer, const Note& note, ConstBytes payload) noexcept;
  void on_message(int peer, const Note& note, ConstBytes payload) noexcept;
  void on_probe(int peer, const Note& note, ConstBytes payload) noexcept;
  void ask() noexcept;
  void answer() noexcept;
  bool can_send(int peer) noexcept;
  bool find_other_call(int peer, ConstBytes records, Probe probe) noexcept;
  CallRecord kept_call(uint32_t op) const noexcept;
  void on_abort(int peer, const Note& note, ConstBytes payload) noexcept;
  void learn_abort(int peer, const Note& note, ConstBytes payload) noexcept;
  bool keep_abort(int peer, const Note& note, ConstBytes payload) noexcept;
  void take_kept_abort() noexcept;
  bool runs_before(uint32_t op) const noexcept;
  void begin_to_fail() noexcept;
  Status death_of(int peer, std::string_view why) const noexcept;
  void notify_failure() noexcept;

  Engine& engine_;
  uint64_t epoch_;
  uint32_t number_ = 1;
  std::shared_ptr<const Placement> placement_;
  int rank_;
  std::unique_ptr<NodeWindow> window_;
  std::vector<int> team_ranks_;  // job rank -> team rank; empty when they are the same
  TeamCredit credit_;

  uint32_t next_op_ = 1;
  uint32_t completed_ = 0;        // all collectives up to this one
  std::vector<Request*> active_;  // circular, indexed by op
  static constexpr uint32_t kKeptCalls = 128, kProbedCalls = 8;
  std::array<CallRecord, kKeptCalls> calls_;  // the last ones, indexed by op: for probes
  // Of collectives not started here yet, in order of arrival, by op: each start looks at its own list only. Made when
  // the first one comes.
  struct EarlyList {
    EarlyMessage* head = nullptr;
    EarlyMessage** tail = &head;
  };
  static constexpr uint32_t kEarlyLists = 64;
  std::unique_ptr<EarlyList[]> early_;
  TeamFailure failure_;
  static bool is_after(uint32_t a, uint32_t b) noexcept { return static_cast<int32_t>(a - b) > 0; }
  uint32_t failed_op_ = 0;  // the call that failed the team; 0: not known
  // Of another rank, until the calls before the one that failed have ended here.
  struct KeptAbort {
    int peer;
    Note note;
    std::vector<std::byte> text;
    Time since;
  };
  std::unique_ptr<KeptAbort> kept_abort_;
  Ended last_ended_ = Ended::kAsFailed;
  int other_peer_ = -1;  // see suspect_call()
  uint32_t other_op_ = 0;
  Time ask_at_ = 0;
  int answer_to_ = -1;  // has no answer of this rank yet
  uint32_t answer_op_ = 0;
  bool parting_ = false;
  bool connects_ = true;
  int requests_ = 0;
  uint32_t children_ = 0;
};

}  // namespace ibcoll
