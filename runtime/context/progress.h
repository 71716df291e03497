// SPDX-License-Identifier: BSD-3-Clause
// Moves the collectives of a process forward: passes of the engine, and what is due from time to time beside them. The
// context's lock is held around every call, except where a function says otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "bootstrap/bootstrap.h"
#include "runtime/context/drainer.h"
#include "runtime/context/ended_ranks.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/request.h"
#include "runtime/engine/team.h"

namespace ibcoll {

class Progress {
 public:
  // `network`: nullptr where the job has one node only. All outlive this object, or its close().
  void open(std::unique_ptr<Engine> engine, Bootstrap& bootstrap, Transport* network);
  // The team of all ranks, which lives until close().
  void watch(const Team& world) noexcept { world_ = &world; }
  // nullptr: messages that are queued leave in calls only.
  void drain_with(std::unique_ptr<Drainer> drainer) noexcept { drainer_ = std::move(drainer); }
  // All teams have ended. Passes do nothing from now on.
  void close() noexcept;

  Engine& engine() noexcept { return *engine_; }
  const Engine& engine() const noexcept { return *engine_; }

  // One pass over all teams; returns the number of events handled.
  uint64_t pass() noexcept {
    if (!engine_) return 0;
    const uint64_t before = engine_->events();
    engine_->progress();
    after_a_pass();
    return engine_->events() - before;
  }
  // Does what is due from time to time. The clock decides, as a host program may poll rarely, and other teams may keep
  // a waiting thread busy.
  void after_a_pass() noexcept;
  // Checks for dead peers, stalls and deadlines, by system calls: too slow for every pass.
  void check() noexcept;
  // Takes what the launcher has reported, for knows_dead().
  void take_reports() noexcept { ended_ranks_->poll(); }
  // A transport, the launcher, or the rank that reported the failure of the team says that the peer has died.
  bool knows_dead(const Team& team, int peer) const noexcept {
    const int job = team.members().job_rank(peer);
    return engine_->lost().dead(job) || ended_ranks_->reported(job) || team.health().failure().dead_peer() == peer;
  }
  // The launcher has decided that these ranks of the job have died: what it has reported of them applies now.
  void apply_verdict(const std::vector<bool>& dead) noexcept;
  // A call has ended without a pass. False: every 64th such call makes one, for failures; every 16th while a collective
  // is in flight: a rank that always comes last finds all that it needs in the node window, and never waits.
  bool goes_without_messages() noexcept {
    const uint32_t calls = ++without_messages_;
    if (calls % kCallsPerLook != 0) [[likely]]
      return true;
    return calls % kCallsPerPass != 0 && engine_->idle();
  }

  Status start(Request& request) noexcept {
    Status status = request.start();
    if (!status.ok()) [[unlikely]]
      spread_failure(request.team());
    if (!request.in_flight() && !goes_without_messages()) pass();
    return status;
  }
  // A call has ended without a pass, and returns.
  void ended_without_a_pass() noexcept {
    if (!goes_without_messages()) [[unlikely]]
      pass();
    drain_later();
  }
  // After a failure: this rank may not wait any more, but other ranks may wait for it.
  void spread_failure(Team& team) noexcept;
  // Returns what body() returns; where memory is short the team fails, and this is its refusal: the other ranks are in
  // the call, or will be.
  template <typename Body>
  auto or_fail(Team& team, Body body) -> decltype(body()) {
    try {
      return body();
    } catch (const std::bad_alloc&) {
      return fail_for_memory(team);
    }
  }

  // Messages of complete collectives are queued, and leave only while a thread waits. Without the lock.
  bool needs_polling() const noexcept { return network_ && network_->needs_polling(); }
  // A call of the program returns: what is still queued leaves without another call.
  void drain_later() noexcept {
    if (drainer_) drainer_->start_if_needed();
  }

  // Threads inside of Waiting::wait(), which may have released the lock. Without the lock.
  int waiting_threads() const noexcept { return waiting_threads_.load(std::memory_order_relaxed); }
  // Changes under the lock only, so that no atomic read-modify-write is needed.
  void count_waiting(int change) noexcept {
    waiting_threads_.store(waiting_threads() + change, std::memory_order_relaxed);
  }

 private:
  static constexpr uint32_t kCallsPerLook = 16, kCallsPerPass = 64;  // where collectives complete without a pass

  Status fail_for_memory(Team& team) noexcept;

  std::unique_ptr<Engine> engine_;
  std::unique_ptr<EndedRanks> ended_ranks_;
  std::unique_ptr<Drainer> drainer_;
  Transport* network_ = nullptr;
  const Team* world_ = nullptr;
  uint32_t passes_ = 0;            // for after_a_pass()
  uint32_t without_messages_ = 0;  // collectives that were complete without a pass
  Time checked_at_ = 0;
  std::atomic<int> waiting_threads_{0};
};

}  // namespace ibcoll
