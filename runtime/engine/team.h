// SPDX-License-Identifier: BSD-3-Clause
// A group of ranks and the collectives in flight on it. Its parts each do one job: who is in it (members), how to reach
// them (links), which calls are in flight (calls), whether it has failed (health), and how ranks find out that their
// calls differ (questions).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/comm/node_window.h"
#include "runtime/comm/placement.h"
#include "runtime/engine/call_questions.h"
#include "runtime/engine/calls_in_flight.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/failure_notices.h"
#include "runtime/engine/team_health.h"
#include "runtime/engine/team_links.h"
#include "runtime/engine/team_members.h"

namespace ibcoll {

class Exchange;
class Request;
class ShortExchange;

class Team {
 public:
  // `epoch`: see TeamMembers. `window`: nullptr when no two ranks of the team share a node.
  Team(Engine& engine, uint64_t epoch, Placement placement, int rank, std::unique_ptr<NodeWindow> window)
      : Team(engine, epoch, std::make_shared<const Placement>(std::move(placement)), rank, std::move(window)) {}
  // Simulated ranks are too many for a placement each.
  Team(Engine& engine, uint64_t epoch, std::shared_ptr<const Placement> placement, int rank,
       std::unique_ptr<NodeWindow> window);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  Engine& engine() noexcept { return engine_; }
  NodeWindow* window() noexcept { return window_.get(); }
  TeamMembers& members() noexcept { return members_; }
  const TeamMembers& members() const noexcept { return members_; }
  TeamLinks& links() noexcept { return links_; }
  const CallsInFlight& calls() const noexcept { return calls_; }
  TeamHealth& health() noexcept { return health_; }
  const TeamHealth& health() const noexcept { return health_; }
  CallQuestions& questions() noexcept { return questions_; }
  int rank() const noexcept { return members_.rank(); }
  int size() const noexcept { return members_.size(); }
  // Ok, or why the team accepts no collectives any more.
  const Status& failure() const noexcept { return health_.status(); }

  // ---- requests of the team

  // Takes the memory that the starts of one more need, or throws std::bad_alloc.
  void adopt() {
    if (window_) window_->queue().reserve(requests_ + 1);
    ++requests_;
  }
  void disown() noexcept { --requests_; }
  int requests() const noexcept { return requests_; }

  // ---- collectives

  // Gives the request the next sequence number and runs it up to its first wait. False: memory for that is short, and
  // the team has failed.
  bool start(Request& request) noexcept;
  // Runs a call of one step, or one exchange of short messages, without a task, if no other call is in flight and all
  // that it awaits is there within `looks` looks. kHandedOver: it was not, and the request is in flight, or has ended,
  // with a task. kNo: nothing has happened; start() it.
  enum class Short { kDone, kHandedOver, kNo };
  Short run_short(Request& request, uint32_t looks) noexcept;
  // Its task has ended, or what has failed returns its buffers.
  void finish(Request& request) noexcept;
  // False while a failure is uncertain: a call that is started then ends with the cause that is found.
  bool refuses() const noexcept { return health_.failure().certain(); }
  // The failure, for a call that is refused.
  const Status& refusal() noexcept { return health_.refusal(calls_.next()); }

  // ---- for the engine

  void on_note(int peer, const Note& note, ConstBytes payload) noexcept;
  void on_peer_failed(int job_rank, std::string_view why) noexcept;
  void explain_death(int job_rank, std::string_view how) noexcept;
  // After a failure: notifies the other ranks and ends what is in flight. False while there is more to do.
  bool end_requests() noexcept;
  void check(Time now) noexcept;
  // A line for each collective in flight.
  std::string describe() const;

 private:
  bool has_published(int first, int end, uint32_t looks) const noexcept;
  Short run_exchange(Request& request, uint32_t looks) noexcept;
  void take_early(ShortExchange& exchange, uint32_t op) noexcept;
  template <bool (Request::*kBegin)(uint32_t op) noexcept>
  void begin(Request& request) noexcept;
  template <bool (Request::*kBegin)(uint32_t op) noexcept>
  Short hand_over(Request& request) noexcept {
    begin<kBegin>(request);
    return Short::kHandedOver;
  }
  void lack_memory(const Request& request) noexcept;
  void deliver_early(Request& request) noexcept;
  void keep_early(int peer, const Note& note, ConstBytes payload) noexcept;
  void on_message(int peer, const Note& note, ConstBytes payload) noexcept;
  void check_call(Request& request, Time now) noexcept;
  void find_failed_local(Request& request) noexcept;
  void notify_before_end() noexcept;

  Engine& engine_;
  std::unique_ptr<NodeWindow> window_;
  TeamMembers members_;
  CallsInFlight calls_;
  TeamHealth health_;
  TeamLinks links_;
  CallQuestions questions_;
  FailureNotices notices_;
  // Messages of collectives not started here yet, by op: each start looks at its own list only. Made for the first one.
  static constexpr uint32_t kEarlyLists = 256;
  std::unique_ptr<EarlyList[]> early_;
  uint32_t early_count_ = 0;
  ShortExchange* running_ = nullptr;  // of the call that run_short() is in, the next one
  int requests_ = 0;
};

}  // namespace ibcoll
