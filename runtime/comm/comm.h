// SPDX-License-Identifier: BSD-3-Clause
// An algorithm's view of the job: the communication of one collective on one rank. A Comm speaks for an ordered
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

#include "runtime/base/buffer.h"
#include "runtime/base/status.h"
#include "runtime/comm/comm_backend.h"
#include "runtime/comm/node_window.h"
#include "runtime/comm/placement.h"
#include "runtime/comm/task.h"

namespace ibcoll {

class Comm {
 public:
  struct [[nodiscard]] Awaiter {
    Comm& comm;
    Wait wait;
    bool await_ready() const noexcept { return comm.backend_->satisfied(wait); }
    void await_suspend(std::coroutine_handle<>) const noexcept { comm.backend_->suspend(wait); }
    void await_resume() const noexcept {}
  };
  struct [[nodiscard]] ArrivalAwaiter : Awaiter {
    int await_resume() const noexcept { return comm.backend_->take_arrival(); }
  };
  struct [[nodiscard]] LandingAwaiter : Awaiter {
    int await_resume() const noexcept { return comm.backend_->take_landing(); }
  };
  struct [[nodiscard]] PartOrLandingAwaiter : Awaiter {
    int await_resume() const noexcept { return comm.backend_->take_part_or_landing(wait); }
  };
  struct [[nodiscard]] ReadAwaiter {
    Comm& comm;
    MemoryRead read;
    bool await_ready() noexcept { return comm.backend_->begin_read(read); }
    void await_suspend(std::coroutine_handle<>) const noexcept { comm.backend_->suspend(read.wait); }
    bool await_resume() const noexcept { return !read.failed; }
  };

  // `ranks`: team ranks; nullptr: the whole team. `window`: nullptr when no two ranks of the team share a node. What is
  // given here outlives the Comm.
  Comm(CommBackend& backend, const Placement& placement, NodeWindow* window, const int* ranks, int rank,
       int size) noexcept
      : backend_(&backend), placement_(&placement), window_(window), ranks_(ranks), rank_(rank), size_(size) {}

  // ---- ranks

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  // (rank + i) mod size, for i in (-size, size).
  int peer(int i) const noexcept {
    const int at = rank_ + i;
    return at < 0 ? at + size_ : at >= size_ ? at - size_ : at;
  }
  // The rank in the team of a rank of this Comm.
  int team_rank(int rank) const noexcept { return ranks_ ? ranks_[rank] : rank; }
  // The nodes of the ranks of the team, by team rank.
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

  // Messages to and from the peer move while this rank computes: the processor that it uses does not copy them.
  bool moves_meanwhile(int peer) noexcept { return backend_->moves_meanwhile(team_rank(peer)); }

  // Until a put of `bytes` bytes to the peer can leave: at once when it is eager or empty, else when the peer arrived.
  Awaiter ready(int peer, uint64_t bytes) noexcept { return {*this, {WaitKind::kReady, team_rank(peer), bytes}}; }
  // next_arrival() shall return the peer, to which a message of `bytes` bytes will go.
  void serve(int peer, uint64_t bytes) noexcept;
  // The next peer to serve, each once: those that have arrived, in arrival order; while none has, peers whose message
  // needs no arrival (eager or empty), in the order of serve().
  ArrivalAwaiter next_arrival() noexcept { return {{*this, {WaitKind::kArrival, -1, 0}}}; }
  // Until all that was announced has landed.
  Awaiter received() noexcept { return {*this, {WaitKind::kReceived, -1, 0}}; }
  // Until all that was announced to the peer has landed, but for the last `but` bytes of it.
  Awaiter received_from(int peer, uint64_t but = 0) noexcept {
    return {*this, {WaitKind::kReceivedFrom, team_rank(peer), but}};
  }
  // next_landing() shall return the peer.
  void watch(int peer) noexcept;
  // The next watched peer from which all that was announced to it has landed, in that order. Each watch() counts once.
  LandingAwaiter next_landing() noexcept { return {{*this, {WaitKind::kLanding, -1, 0}}}; }
  // The same without a wait; -1: there is none.
  int landed() noexcept { return backend_->satisfied({WaitKind::kLanding, -1, 0}) ? backend_->take_landing() : -1; }
  // Until the engine has looked for messages once more; one look may be under way. Where puts end at once, nothing else
  // lets landed() see others.
  Awaiter looked() noexcept { return {*this, {WaitKind::kPassed, -1, backend_->passes() + 2}}; }
  // Until the source of every put is reusable, but for at most `but` of them.
  Awaiter flushed(uint64_t but = 0) noexcept { return {*this, {WaitKind::kFlushed, -1, but}}; }

  // ---- node window: memory that the team's ranks on this node share. Steps: next_step, write own area, publish, read
  // others' areas after published(). Peers are indices within the node: ranks of on_node().

  NodeWindow& node() noexcept { return *window_; }
  // Until no earlier collective uses the window, and the bank of the next step, in which no rank publishes more than
  // `bytes` bytes (the same on all), is free on all ranks.
  Awaiter next_step(uint64_t bytes) noexcept { return {*this, {WaitKind::kStep, -1, bytes}}; }
  // The same for a step in which one rank alone writes; it may run further ahead.
  Awaiter next_sole_step(uint64_t bytes) noexcept { return {*this, {WaitKind::kSoleStep, -1, bytes}}; }
  // The same where each rank says what it writes itself (others need not know): a rank that writes at most what a line
  // or a short area holds may run further ahead.
  Awaiter next_own_step(uint64_t bytes) noexcept { return {*this, {WaitKind::kOwnStep, -1, bytes}}; }
  void publish() noexcept {
    if (window_->wants_notice() && !backend_->before_publication()) [[unlikely]]
      return;
    window_->publish(backend_->signature());
  }
  // Until the local peer has published the current step.
  Awaiter published(int local) noexcept { return published(local, NodeWindow::kWhole); }
  // Until all local peers have.
  Awaiter all_published() noexcept { return {*this, {WaitKind::kAllPublished, -1, NodeWindow::kWhole}}; }
  // A step may come in parts; publish() is the last one. A rank that sleeps until this rank publishes is woken by
  // publish(), and by parts that are worth it or that it can take on another processor.
  void publish_part(bool worth_waking = false) noexcept {
    if (window_->wants_notice() && !backend_->before_publication()) [[unlikely]]
      return;
    window_->publish_part(backend_->signature(), worth_waking);
  }
  // A part that holds no data and wakes no rank. Before it, or publish(), this rank must not wait for what others
  // publish.
  void publish_call() noexcept { window_->publish_call(backend_->signature()); }
  // Until the local peer has published this number of parts of the step, or all.
  Awaiter published(int local, uint64_t parts) noexcept { return {*this, {WaitKind::kPublished, local, parts}}; }
  // Until a watched peer's data has landed: the result is -1; or a local peer i has published parts[i] parts of the
  // step: the result is i. The array has an entry for each rank of the node; 0: nothing is awaited of it.
  PartOrLandingAwaiter next_part_or_landing(const uint32_t* parts) noexcept {
    return {{*this, {WaitKind::kPartOrLanding, -1, reinterpret_cast<uint64_t>(parts)}}};
  }
  // Memory that local peers may read until this rank has seen them publish a later step; what it publishes is an
  // address in that memory. The last two count, and `memory` may be more than what is read. A call that lends ends
  // after flushed().
  void lend(ConstBytes memory) noexcept { backend_->lend(memory); }
  // One copy from the private memory of a local peer, at an address in what it has lent. Where the kernel does not
  // allow that any more, the peer puts the bytes here, while it waits for a later step of this rank. Result false: the
  // collective has failed; co_return, before others take what was not read for data. The next publish() first makes
  // sure that the bytes are the peer's.
  ReadAwaiter read(int local, uint64_t address, Bytes into) noexcept { return {*this, {local, address, into}}; }

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
  bool failed() const noexcept { return backend_->failed(); }

 private:
  friend Arena& arena_of(Comm& comm) noexcept;
  friend CallStack& stack_of(Comm& comm) noexcept;
  Comm& make(const int* ranks, int rank, int size) noexcept;

  CommBackend* backend_;
  const Placement* placement_;
  NodeWindow* window_;
  const int* ranks_;  // team ranks; nullptr: the whole team
  int rank_;
  int size_;
};

inline Arena& arena_of(Comm& comm) noexcept { return comm.backend_->arena(); }
inline CallStack& stack_of(Comm& comm) noexcept { return comm.backend_->stack(); }

}  // namespace ibcoll
