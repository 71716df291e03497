// SPDX-License-Identifier: BSD-3-Clause
// Runs the tasks of collectives until they wait, and keeps what no message will continue: tasks that wait for shared
// memory, tasks that may serve late peers, messages that found no room, and copies that nothing waits for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "runtime/transport/transport.h"

namespace ibcoll {

class Exchange;
class IdleCopy;
class Request;
struct Channel;

class Scheduler {
 public:
  // `calls_at_once`: in flight before its lists grow.
  explicit Scheduler(uint32_t calls_at_once);
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Resumes the request's task until it waits or ends.
  void run(Request& request) noexcept;
  // If its task can continue.
  void run_if_ready(Exchange& exchange) noexcept;
  // The request has ended.
  void forget(Request& request) noexcept;

  // Nothing that it keeps can continue without a message.
  bool waits_for_messages_only() const noexcept {
    return memory_waits_.empty() && arrival_waits_.empty() && blocked_.empty() && idle_copies_.empty();
  }

  // ---- shared memory

  bool waits_for_memory() const noexcept { return !memory_waits_.empty(); }
  // Continues tasks with what shared memory holds; true: some could.
  bool look_at_memory() noexcept;
  // All that is in flight, `in_flight` requests, waits for one rank of this node: its bell. Exchange::kNoBell: there is
  // none.
  int awaited_bell(size_t in_flight) const noexcept;
  // All tasks that wait for shared memory wait for the rows that the leader of this node collects, its own and those of
  // other nodes.
  bool awaits_leaders() const noexcept;

  // ---- messages that found no room

  // False: no memory.
  bool retry(Channel& channel) noexcept { return list(blocked_, channel); }
  void forget(Channel& channel) noexcept;
  // True: some have left.
  bool retry_blocked() noexcept { return !blocked_.empty() && retry_all(); }
  // A question of a stalled rank said that it has completed more collectives than was known.
  void question_brought_credit() noexcept { questions_that_helped_ += retry_blocked(); }
  // Questions, meant for failures, that let a healthy rank send what it could not: each is a fault of this library, which
  // cost the job a second.
  uint64_t questions_that_helped() const noexcept { return questions_that_helped_; }

  // ---- late peers

  bool serves_late_peers() const noexcept { return !arrival_waits_.empty(); }
  // `moved`: in this pass. Links of early ranks are idle while peers are late: when nothing has moved for a while,
  // messages for these go to their landing memory. True: some could.
  bool serve_late_peers(bool moved, Time now) noexcept;
  // When that will be, unless something happens before; 0: not at all. For simulated time.
  Time spills_at() const noexcept { return arrival_waits_.empty() ? 0 : idle_since_ + kSpillAfter; }

  // ---- copies

  // A slice of it is copied whenever nothing else moves. False: there is no room in the list.
  bool copies_when_idle(IdleCopy& copy, const Exchange& of) noexcept;
  void forget_copy(IdleCopy& copy) noexcept {
    if (!idle_copies_.empty()) erase(copy);
  }
  bool copy_a_slice() noexcept { return !idle_copies_.empty() && copy_now(); }

  // Tasks that found what they waited for in memory, and slices of copies, since the start.
  uint64_t events() const noexcept { return events_; }

 private:
  static constexpr Time kSpillAfter = 50'000;

  // False: no memory.
  template <typename T>
  static bool list(std::vector<T*>& list, T& one) noexcept {
    try {
      list.push_back(&one);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  void wait_in(std::vector<Request*>& waits, bool& listed, Request& request) noexcept;
  bool retry_all() noexcept;
  bool copy_now() noexcept;
  void erase(IdleCopy& copy) noexcept;

  std::vector<Request*> memory_waits_;   // tasks that wait for a flag in shared memory
  std::vector<Request*> arrival_waits_;  // tasks that wait for an arrival although they could send to late peers
  std::vector<Channel*> blocked_;
  struct ListedCopy {
    IdleCopy* copy;
    const Exchange* of;
  };
  std::vector<ListedCopy> idle_copies_;
  Time idle_since_ = 0;  // nothing has moved while tasks waited for arrivals
  uint32_t idle_passes_ = 0;
  uint64_t events_ = 0;
  uint64_t questions_that_helped_ = 0;
};

}  // namespace ibcoll
