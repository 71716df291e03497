// SPDX-License-Identifier: BSD-3-Clause
// Carries out the communication of one collective on one rank. Its task sees a CommBackend; the engine resumes the task
// and brings notes. What leaves, what arrives, and the node window are parts of their own; what the task waits for is
// in waits.h. Ranks are team ranks.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/comm/comm.h"
#include "runtime/engine/exchange_state.h"
#include "runtime/engine/exchange_trace.h"
#include "runtime/engine/idle_copy.h"
#include "runtime/engine/incoming.h"
#include "runtime/engine/node_side.h"
#include "runtime/engine/outgoing.h"
#include "runtime/engine/single_copy_reads.h"
#include "runtime/engine/waits.h"

namespace ibcoll {

class Exchange final : public CommBackend {
 public:
  Exchange(Team& team, uint32_t signature) noexcept;

  // Ready for a new run, after release().
  void reset(uint32_t op, ibcoll_scheme_t scheme, bool uses_window) noexcept;
  // After success, or a failure and incoming().conceal(): credits are returned.
  void close() noexcept;
  // Returns all memory of the run to the arena, which keeps it in one block: the next run allocates none.
  void release() noexcept;

  // The Comm of the whole team.
  Comm& comm() noexcept { return comm_; }
  Team& team() const noexcept { return state_.team(); }
  uint32_t op() const noexcept { return state_.op(); }
  const ExchangeState& state() const noexcept { return state_; }
  ExchangeState& state() noexcept { return state_; }
  Incoming& incoming() noexcept { return incoming_; }
  const Incoming& incoming() const noexcept { return incoming_; }
  Outgoing& outgoing() noexcept { return outgoing_; }
  const Outgoing& outgoing() const noexcept { return outgoing_; }
  NodeSide& node() noexcept { return node_; }
  const NodeSide& node() const noexcept { return node_; }
  IdleCopy& idle_copy() noexcept { return idle_copy_; }
  ExchangeTrace& trace() noexcept { return trace_; }
  // The team has failed.
  bool failed() const noexcept override { return !team().health().good(); }

  // ---- the task

  // Resumes the innermost task until it waits; true: the collective's task has ended.
  bool resume() noexcept;
  // The wait of the suspended task is over.
  bool runnable() noexcept { return satisfied(wait_); }
  const Wait& wait() const noexcept { return wait_; }
  bool polls_memory() const noexcept { return polls_window(wait_.kind); }
  // The task waits for an arrival, and may send to peers that are late.
  bool awaits_arrival() const noexcept { return wait_.kind == WaitKind::kArrival && outgoing_.spills(); }
  // The bell of the rank of the node that the wait is for.
  static constexpr int kNoBell = Doorbell::kNoBell;  // messages are on their way, too, or no rank would ring
  static constexpr int kEarlierCollective = -2;      // of this rank, which still uses the window
  int awaited_bell() const noexcept;
  // "waits for data of rank 6 (3 bytes landed)".
  std::string describe_wait() const noexcept;
  // Calls ask(to, rank) for the team ranks that the task waits for.
  void awaited(void (*ask)(void* to, int rank), void* to) const { rule_of(wait_).awaited(*this, wait_, ask, to); }
  // Sends the last calls to ranks that this one waits for, at most kMostAsked at a time. Each message to a rank that
  // this one has not written to takes memory, and many messages would delay ranks that are late anyway.
  static constexpr uint64_t kMostAsked = 16;
  void ask_awaited() noexcept;

  // ---- notes

  // A message of this collective from `peer`.
  void on_note(int peer, const Note& note, ConstBytes payload) noexcept;
  // The peer has answered that it has completed this collective.
  void on_ended(int peer) noexcept;
  // When the task is done: true when peers sent and wanted no more than it took and gave. Else the collective fails.
  bool matched() noexcept;

 private:
  // ---- CommBackend

  void announce(int peer, Bytes into, int called) noexcept override { incoming_.announce(peer, into, called); }
  void put(int peer, ConstBytes piece, uint64_t total) noexcept override;
  void serve(int peer, uint64_t bytes, int called) noexcept override { incoming_.serve(peer, bytes, called); }
  void watch(int peer, int called) noexcept override { incoming_.watch(peer, called); }
  bool moves_meanwhile(int peer) noexcept override { return state_.links().transport(peer).moves_meanwhile(); }
  bool satisfied(const Wait& wait) noexcept override { return rule_of(wait).satisfied(*this, wait); }
  void suspend(const Wait& wait) noexcept override {
    wait_ = wait;
    if (trace_.enabled() && polls_memory() && node_.may_use_window()) [[unlikely]]
      trace_.suspended(wait);
  }
  uint64_t passes() const noexcept override { return team().engine().passes(); }
  int take_arrival() noexcept override { return incoming_.take_arrival(); }
  int take_landing() noexcept override { return incoming_.take_landing(); }
  int take_part_or_landing(const Wait& wait) noexcept override {
    return incoming_.has_landing() ? -1 : node_.peer_with_part(wait.parts());
  }
  void lend(ConstBytes memory) noexcept override { reads_.lend(memory); }
  bool begin_read(MemoryRead& read) noexcept override;
  bool before_publication() noexcept override {
    trace_.publishes();
    return !node_.window().has_unconfirmed_reads() || reads_.confirm();
  }
  void copy_when_idle(Bytes to, ConstBytes from) noexcept override;
  void fail(Status status) noexcept override { team().health().fail(std::move(status)); }
  void mismatch(int peer, uint64_t theirs, uint64_t mine, const char* what) noexcept override {
    state_.mismatch(peer, theirs, mine, what);
  }

  void ask_owner(MemoryRead& read) noexcept;
  void on_wanted(Channel& channel, const Note& note, ConstBytes payload) noexcept;
  int wait_ended_by() noexcept;

  ExchangeState state_;
  ExchangeTrace trace_;
  Outgoing outgoing_;
  Incoming incoming_;
  NodeSide node_;
  SingleCopyReads reads_;
  IdleCopy idle_copy_;
  Comm comm_;
  Wait wait_;
  uint64_t asked_ = 0;  // by ask_awaited(), in this run
};

}  // namespace ibcoll
