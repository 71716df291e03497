// SPDX-License-Identifier: BSD-3-Clause
// Carries out the communication of one collective on one rank: the messages between this rank and its peers, and what
// its task waits for. Ranks are team ranks.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/peer_table.h"
#include "runtime/comm/comm.h"
#include "runtime/engine/arrivals.h"
#include "runtime/engine/channel.h"
#include "runtime/engine/exchange_trace.h"
#include "runtime/engine/single_copy_reads.h"
#include "runtime/engine/waits.h"
#include "runtime/include/ibcoll.h"
#include "runtime/machine/memory_access.h"

namespace ibcoll {

class Team;
class Request;
class TraceBuffer;
struct TracedCall;

class Exchange final : public CommBackend {
 public:
  Exchange(Team& team, uint32_t signature) noexcept;

  // Ready for a new run, after release().
  void reset(uint32_t op, ibcoll_scheme_t scheme, bool uses_window) noexcept;
  // The Comm of the whole team.
  Comm& comm() noexcept { return comm_; }
  Team& team() noexcept { return team_; }
  const Team& team() const noexcept { return team_; }
  NodeWindow& window() const noexcept { return *window_; }
  uint32_t op() const noexcept { return op_; }

  // ---- the task

  // Resumes the innermost task until it waits; true: the collective's task has ended.
  bool resume() noexcept;
  bool satisfied(const Wait& wait) noexcept override { return rule_of(wait).satisfied(*this, wait); }
  void suspend(const Wait& wait) noexcept override {
    wait_ = wait;
    if (trace_.enabled() && polls_memory() && may_use_window()) [[unlikely]]
      trace_.suspended(wait);
  }
  // The wait of the suspended task is over.
  bool runnable() noexcept { return satisfied(wait_); }
  const Wait& wait() const noexcept { return wait_; }
  bool polls_memory() const noexcept { return polls_window(wait_.kind); }
  bool awaits_part() const noexcept { return wait_.kind == WaitKind::kPublished && wait_.value != NodeWindow::kWhole; }
  // The task waits for an arrival although peers that it serves are late and have landing memory left.
  bool awaits_arrival() const noexcept {
    return wait_.kind == WaitKind::kArrival && spill_share_ > 0 && scheme_ != IBCOLL_SCHEME_ZERO_COPY;
  }
  // One of the late peers counts as ready from now on: what is put goes to its landing memory. False: there is none.
  bool serve_late() noexcept { return arrivals_.serve_late(channels_.first()); }
  // The bell of the rank of the node that the wait is for.
  static constexpr int kNoBell = Doorbell::kNoBell;  // messages are on their way, too, or no rank would ring
  static constexpr int kEarlierCollective = -2;      // of this rank, which still uses the window
  int awaited_bell() const noexcept;
  // "waits for data of rank 6 (3 bytes landed)".
  std::string describe_wait() const noexcept;
  // Calls ask(to, rank) for the team ranks that the task waits for.
  void awaited(void (*ask)(void* to, int rank), void* to) const;

  // ---- CommBackend

  void announce(int peer, Bytes into, int called) noexcept override;
  void put(int peer, ConstBytes piece, uint64_t total) noexcept override;
  void serve(int peer, uint64_t bytes, int called) noexcept override;
  void watch(int peer, int called) noexcept override;
  bool moves_meanwhile(int peer) noexcept override;
  int take_arrival() noexcept override { return arrivals_.take().called; }
  int take_landing() noexcept override { return landings_.pop().called; }
  int take_part_or_landing(const Wait& wait) noexcept override {
    return has_landing() ? -1 : peer_with_part(wait.parts());
  }
  void lend(ConstBytes memory) noexcept override { reads_.lend(memory); }
  void copy_when_idle(Bytes to, ConstBytes from) noexcept override;
  bool begin_read(MemoryRead& read) noexcept override;
  bool before_publication() noexcept override {
    trace_.publishes();
    return !window_->has_unconfirmed_reads() || reads_.confirm();
  }
  void fail(Status status) noexcept override;
  bool failed() const noexcept override;

  // ---- for the team and the engine

  // A message of this collective from `peer`.
  void on_note(int peer, const Note& note, ConstBytes payload) noexcept;
  void on_sent(Channel& channel) noexcept {
    --puts_pending_;
    trace_.sent(channel.times);
  }
  uint32_t puts_pending() const noexcept { return puts_pending_; }
  // Sends what can leave; true when nothing is left to retry.
  bool pump(Channel& channel) noexcept;
  // Sends the last calls to ranks that this one waits for, at most kMostAsked at a time. Each message to a rank that
  // this one has not written to takes memory, and many messages would delay ranks that are late anyway.
  static constexpr uint64_t kMostAsked = 16;
  void probe() noexcept;
  // The answer of a peer to a probe.
  void on_ended(int peer) noexcept;
  // When the task is done: true when peers sent and wanted no more than it took and gave. Else the collective fails.
  bool matched() noexcept;
  // After a failure: takes back every right to write to user memory. False: a peer is writing just now, repeat.
  bool conceal() noexcept;
  // Copies at most `bytes` of what copy_when_idle() has left; true: nothing is left any more.
  bool copy_slice(uint64_t bytes) noexcept;
  // After success, or a failure and conceal(): credits are returned.
  void close() noexcept;
  ExchangeTrace& trace() noexcept { return trace_; }
  // Adds the call, which has its arrival, and what was noted of its peers and of the node window.
  void add_to_trace(TraceBuffer& buffer, TracedCall call) const noexcept;
  // Which ranks still have the buffers of a collective that has failed.
  std::string describe_end() const;
  // Returns all memory of the run to the arena, which keeps it in one block: the next run allocates none.
  void release() noexcept;
  // Fails: `what` is `theirs` at the peer and `mine` here.
  void mismatch(int peer, uint64_t theirs, uint64_t mine, const char* what) noexcept override;
  // Fails: the digest of the peer's call, or of its calls so far, is another one.
  void other_call(int peer) noexcept;

  // ---- for waits

  const Channel* find(int peer) const noexcept { return channels_.find(peer); }
  const Channel* first_channel() const noexcept { return channels_.first(); }
  bool eager(uint64_t bytes) const noexcept { return scheme_ != IBCOLL_SCHEME_ZERO_COPY && bytes <= eager_limit_; }
  bool has_arrival() noexcept { return arrivals_.any(); }
  bool has_landing() const noexcept { return !landings_.empty(); }
  bool all_landed() const noexcept { return messages_landed_ == messages_expected_; }
  bool all_flushed() const noexcept { return puts_queued_ == 0 && puts_pending_ == 0; }
  // No earlier collective of this rank uses the window.
  bool may_use_window() const noexcept { return window_->queue().is_first(window_ticket_); }
  // Fails when the next step of the window cannot begin for that reason. Never true: the wait is not over.
  bool no_memory_for_step() noexcept;
  bool peer_published(int local, uint64_t parts) noexcept;
  // A local peer that has published as many parts as are awaited of it (0: none are); -1: no peer has.
  int peer_with_part(const uint32_t* parts) noexcept;
  int team_rank_of(int local) const noexcept;
  // "(3 of 7 messages landed)"
  std::string describe_landed() const;

 private:
  Channel* channel(int peer) noexcept;
  Message* message() noexcept;
  void recycle(Message* message) noexcept;
  Note note(NoteKind kind, uint64_t bytes, uint32_t index) const noexcept;

  bool pump_advertisements(Channel& channel) noexcept;
  bool pump_puts(Channel& channel) noexcept;
  bool pump_consumed(Channel& channel) noexcept;
  bool pump_wanted(Channel& channel) noexcept;
  enum class Sent { kYes, kWaits, kBusy };
  bool may_run_ahead(Channel& channel) noexcept;
  Sent send_eager(Channel& channel, Message& put) noexcept;
  Sent send_announced(Channel& channel, Message& put) noexcept;
  Sent spill(Channel& channel, Message& put) noexcept;
  void retry_later(Channel& channel) noexcept;

  void on_announce(Channel& channel, const Note& note, ConstBytes payload) noexcept;
  void on_eager(Channel& channel, const Note& note, ConstBytes payload) noexcept;
  void on_spill(Channel& channel, const Note& note, ConstBytes payload) noexcept;
  void on_fragment(Channel& channel, const Note& note, ConstBytes payload) noexcept;
  void on_landed(Channel& channel, const Note& note) noexcept;
  void on_wanted(Channel& channel, const Note& note, ConstBytes payload) noexcept;
  void ask_for(MemoryRead& read) noexcept;
  bool may_access(ConstBytes memory, Access access) noexcept;
  bool conceal(int peer, Message& announced) noexcept;
  void take_eager(Channel& channel, const Note& note, ConstBytes payload) noexcept;
  void keep_unexpected(Channel& channel, const Note& note, ConstBytes payload) noexcept;
  void take_unexpected(Channel& channel) noexcept;
  void land(Channel& channel, uint64_t bytes) noexcept;
  void forget_run() noexcept;
  [[gnu::noinline]] void fail_for_memory() noexcept;
  [[gnu::noinline]] void close_channels() noexcept;
  int wait_ended_by() noexcept;

  Team& team_;
  uint32_t op_ = 0;
  ibcoll_scheme_t scheme_ = IBCOLL_SCHEME_AUTO;
  bool uses_window_ = false;
  int lagging_ = 0;  // the local rank that had not published when its publication was looked for last
  ExchangeTrace trace_;
  SingleCopyReads reads_;
  NodeWindow* window_;
  uint64_t window_ticket_ = 0;
  uint64_t eager_limit_ = 0;
  uint64_t spill_share_ = 0;  // of this rank, in another's landing memory
  uint64_t asked_ = 0;        // by probe(), in this run
  Bytes idle_to_;             // left of copy_when_idle()
  ConstBytes idle_from_;

  Comm comm_;
  Wait wait_;
  uint64_t messages_expected_ = 0;
  uint64_t messages_landed_ = 0;
  uint32_t puts_queued_ = 0;   // pieces that were not handed to the transport yet
  uint32_t puts_pending_ = 0;  // handed over, source not reusable yet
  Arrivals arrivals_;
  ChannelList<Channel, &Channel::next_landing> landings_;  // watched, all has landed
  Message* free_messages_ = nullptr;
  PeerTable<Channel> channels_;
};

}  // namespace ibcoll
