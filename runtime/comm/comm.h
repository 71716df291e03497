// SPDX-License-Identifier: BSD-3-Clause
// What an algorithm sees of the world: the communication of one collective on one rank. A Comm speaks for an ordered
// list of ranks: those of the team, those of a node, the leaders of the nodes, or any list that all its members know.
// Ranks are positions in that list.
//
// Messages between two ranks form one sequence in each direction: the k-th message that rank a puts to rank b lands in
// the k-th region that b announced to a. Sizes must agree. Empty messages do not exist: announce and put of nothing are
// no-ops. All Comms of one collective share these sequences, so the steps of a composed algorithm come in the same
// order on all ranks.
//
// How a message travels depends on its size and the scheme, alike on both sides:
//   eager      (copy-based, up to the eager limit) into a landing slot at once; announce() costs nothing on the wire.
//   announced  announce() sends an advertisement, which is the arrival notice; the put waits for it. zero-copy:
//              RDMA-like write to the advertised region. Forced copy, or no right to write: fragments through landing
//              slots.
// put() never blocks: what cannot leave yet is queued and leaves while other things are awaited.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/arena.h"
#include "runtime/base/buffer.h"
#include "runtime/base/status.h"
#include "runtime/comm/node_window.h"
#include "runtime/comm/placement.h"
#include "runtime/comm/task.h"

namespace ibcoll {

class Exchange;  // the engine's half of a Comm

// What a suspended task waits for. The kinds, and all that is known of each, stand in engine/waits.cc.
struct WaitKind;
struct Wait {
  const WaitKind* kind = nullptr;
  int peer = -1;       // team rank, or a rank of the node window
  uint64_t value = 0;  // bytes, or parts of a step, or where the parts of each local rank stand
};
namespace waits {
extern const WaitKind kReady, kArrival, kReceived, kReceivedFrom, kLanding, kFlushed, kStep, kSoleStep, kOwnStep,
    kPublished, kAllPublished, kPartOrLanding;
}  // namespace waits

class Comm {
 public:
  struct [[nodiscard]] Awaiter {
    Comm& comm;
    Wait wait;
    bool await_ready() const noexcept { return comm.satisfied(wait); }
    void await_suspend(std::coroutine_handle<>) const noexcept { comm.suspend(wait); }
    void await_resume() const noexcept {}
  };
  struct [[nodiscard]] ArrivalAwaiter : Awaiter {
    int await_resume() const noexcept { return comm.take_arrival(); }
  };
  struct [[nodiscard]] LandingAwaiter : Awaiter {
    int await_resume() const noexcept { return comm.take_landing(); }
  };
  struct [[nodiscard]] PartOrLandingAwaiter : Awaiter {
    int await_resume() const noexcept { return comm.take_part(wait); }
  };
  struct [[nodiscard]] ReadAwaiter {
    Comm& comm;
    int local;
    uint64_t address;
    Bytes into;
    Wait wait = {};
    bool failed = false;
    bool await_ready() noexcept { return comm.begin_read(*this); }
    void await_suspend(std::coroutine_handle<>) const noexcept { comm.suspend(wait); }
    bool await_resume() const noexcept { return !failed; }
  };

  // ---- who

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  // (rank + i) mod size, for i in (-size, size).
  int peer(int i) const noexcept {
    const int at = rank_ + i;
    return at < 0 ? at + size_ : at >= size_ ? at - size_ : at;
  }
  // Of a rank of this Comm: its rank in the team.
  int team_rank(int rank) const noexcept { return ranks_ ? ranks_[rank] : rank; }
  // Where the ranks of the team are, by team rank.
  const Placement& placement() const noexcept { return *placement_; }

  // The ranks of the team on this rank's node, in rising order: as the node window numbers them.
  Comm& on_node() noexcept;
  // The leaders of the team's nodes, one per node, in the order of the nodes. This rank must be one.
  Comm& leaders() noexcept;
  // These ranks of this Comm, this rank among them; the array must last as long as the collective. On failure for lack
  // of memory the collective has failed, and nothing that is asked of the result has an effect.
  Comm& among(std::span<const int> ranks) noexcept;

  // ---- messages

  // The peer may write the next message into the region, once.
  void announce(int peer, Bytes into) noexcept;
  // The next message to the peer.
  void put(int peer, ConstBytes from) noexcept { put_piece(peer, from, from.size()); }
  // The next piece of a message of `total` bytes: pieces fill the peer's region from its start, one after the other.
  void put_piece(int peer, ConstBytes from, uint64_t total) noexcept;

  // Until a put of `bytes` bytes to the peer can leave: at once when it is eager or empty, else when the peer arrived.
  Awaiter ready(int peer, uint64_t bytes) noexcept { return {*this, {&waits::kReady, team_rank(peer), bytes}}; }
  // next_arrival() shall return the peer, to which a message of `bytes` bytes will go.
  void serve(int peer, uint64_t bytes) noexcept;
  // The next peer to serve, each once: those that have arrived, in arrival order; while none has, peers whose message
  // needs no arrival (eager or empty), in the order of serve().
  ArrivalAwaiter next_arrival() noexcept { return {{*this, {&waits::kArrival, -1, 0}}}; }
  // Until all that was announced has landed.
  Awaiter received() noexcept { return {*this, {&waits::kReceived, -1, 0}}; }
  // Until all that was announced to the peer has landed, but for the last `but` bytes of it.
  Awaiter received_from(int peer, uint64_t but = 0) noexcept;
  // next_landing() shall return the peer.
  void watch(int peer) noexcept;
  // The next watched peer from which all that was announced to it has landed, in that order. Each watch() counts once.
  LandingAwaiter next_landing() noexcept { return {{*this, {&waits::kLanding, -1, 0}}}; }
  // Until the source of every put is reusable.
  Awaiter flushed() noexcept { return {*this, {&waits::kFlushed, -1, 0}}; }

  // ---- node window: memory that the team's ranks on this node share. Steps: next_step, write own area, publish, read
  // others' areas after published(). Peers are indices within the node: ranks of on_node().

  NodeWindow& node() noexcept { return *window_; }
  // Until this collective has its turn on the window and the bank of the next step, in which no rank publishes more
  // than `bytes` bytes (the same on all), is free on all ranks.
  Awaiter next_step(uint64_t bytes) noexcept { return {*this, {&waits::kStep, -1, bytes}}; }
  // The same for a step in which one rank alone writes; it may run further ahead.
  Awaiter next_sole_step(uint64_t bytes) noexcept { return {*this, {&waits::kSoleStep, -1, bytes}}; }
  // The same where each rank says what it writes itself (others need not know): who writes at most a line's bytes may
  // run further ahead.
  Awaiter next_own_step(uint64_t bytes) noexcept { return {*this, {&waits::kOwnStep, -1, bytes}}; }
  void publish() noexcept {
    if (window_->wants_notice() && !before_publication()) [[unlikely]]
      return;
    window_->publish(signature_);
  }
  // Until the local peer has published the current step.
  Awaiter published(int local) noexcept { return published(local, NodeWindow::kWhole); }
  // Until all local peers have.
  Awaiter all_published() noexcept { return {*this, {&waits::kAllPublished, -1, NodeWindow::kWhole}}; }
  // A step may come in parts; publish() is the last one. A rank that sleeps until this rank publishes is woken by
  // publish(), and by parts that are worth it or that it can take on another processor.
  void publish_part(bool worth_waking = false) noexcept {
    if (window_->wants_notice() && !before_publication()) [[unlikely]]
      return;
    window_->publish_part(signature_, worth_waking);
  }
  // A part that holds no data and wakes nobody: before it, or publish(), this rank may not wait for what others
  // publish.
  void publish_call() noexcept { window_->publish_call(signature_); }
  // Until the local peer has published so many parts of the step, or all.
  Awaiter published(int local, uint64_t parts) noexcept { return {*this, {&waits::kPublished, local, parts}}; }
  // Until a watched peer's data has landed, -1, or a local peer i has published parts[i] parts of the step: the result is
  // i. 0: nothing is awaited of it. The array has an entry for each rank of the node.
  PartOrLandingAwaiter next_part_or_landing(const uint32_t* parts) noexcept {
    return {{*this, {&waits::kPartOrLanding, -1, reinterpret_cast<uint64_t>(parts)}}};
  }
  // Memory that local peers may read until this rank has seen them publish a later step; what it publishes is an
  // address in there. The last two count, and `memory` may be more than what is read. A call that lends ends after
  // flushed().
  void lend(ConstBytes memory) noexcept;
  // One copy from the private memory of a local peer, at an address in what it has lent. Where the kernel does not
  // allow that any more, the peer puts the bytes here, while it waits for a later step of this rank. Result false: the
  // collective has failed; co_return, before others take what was not read for data. The next publish() first makes
  // sure that the bytes are the peer's.
  ReadAwaiter read(int local, uint64_t address, Bytes into) noexcept { return {*this, local, address, into}; }

  // ---- local

  static void copy(Bytes to, ConstBytes from) noexcept;
  // The same where no message depends on it, as for a rank's own block: in slices while nothing else can be done. What
  // is left when the algorithm ends is copied then.
  void copy_when_idle(Bytes to, ConstBytes from) noexcept;
  // copy(), as a part of `total` bytes that the ranks of the node write in this collective: past the caches when
  // these cannot hold them.
  static void copy_within(uint64_t total, Bytes to, ConstBytes from) noexcept;
  // Uninitialised memory until the collective ends. nullptr: the collective has failed; co_return.
  std::byte* scratch(uint64_t bytes) noexcept;
  // The same, of `count` elements, which are not initialized.
  template <typename T>
  T* scratch_array(uint64_t count) noexcept {
    return reinterpret_cast<T*>(scratch(count * sizeof(T)));
  }
  // Ends the collective with an error on all ranks of the team.
  void fail(Status status) noexcept;
  // Fails: `what` is `theirs` at the peer and `mine` here.
  void mismatch(int peer, uint64_t theirs, uint64_t mine, const char* what) noexcept;
  // The collective has failed. An algorithm need not ask: a task that failed is not resumed, nor is one that awaits it.
  bool failed() const noexcept;

 protected:
  friend class Exchange;
  friend Arena& arena_of(Comm& comm) noexcept;
  friend CallStack& stack_of(Comm& comm) noexcept;
  Comm(Exchange& exchange, const Placement& placement, NodeWindow* window, uint32_t signature, const int* ranks,
       int rank, int size) noexcept
      : exchange_(&exchange),
        placement_(&placement),
        window_(window),
        ranks_(ranks),
        rank_(rank),
        size_(size),
        signature_(signature) {}

 private:
  bool satisfied(const Wait& wait) noexcept;
  void suspend(const Wait& wait) noexcept;
  int take_arrival() noexcept;
  int take_landing() noexcept;
  int take_part(const Wait& wait) noexcept;
  bool begin_read(ReadAwaiter& read) noexcept;
  bool before_publication() noexcept;

  Exchange* exchange_;
  const Placement* placement_;
  NodeWindow* window_;
  const int* ranks_;  // team ranks; nullptr: the whole team
  int rank_;
  int size_;
  uint32_t signature_;
};

}  // namespace ibcoll
