// SPDX-License-Identifier: BSD-3-Clause
// A collective that can run any number of times: checked arguments, the selected algorithm, and its runs.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/collectives/framework/algorithm.h"
#include "runtime/collectives/framework/args.h"
#include "runtime/collectives/framework/forced.h"
#include "runtime/comm/task.h"
#include "runtime/engine/call_record.h"
#include "runtime/engine/exchange.h"
#include "runtime/engine/team_learning.h"
#include "runtime/engine/trace.h"

namespace ibcoll {

class Team;

// The result of selection for a call: the algorithm, and the class of calls by which it is learned.
struct Selected {
  Choice predicted;
  LearnedClass* learned = nullptr;  // nullptr: what is predicted, or forced, runs always
  uint32_t applicable = 0;          // bit i: the i-th candidate of the class applies to this call

  Selected(const Choice& choice) noexcept : predicted(choice) {}
};

class Request {
 public:
  // `selected` applies to the team and the call. The count arrays that `args` points to are copied by hold_counts()
  // only. `signature`: of the call with the algorithm that is predicted.
  Request(Team& team, const Args& args, const Selected& selected, ibcoll_scheme_t scheme, uint32_t signature);
  ~Request();
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  // Takes a private copy of the count and displacement arrays that `args` points to. Allocates the first time only.
  void hold_counts();
  // For a request that is idle: the next run has these arguments, for which `choice` and `signature` are the same.
  void bind(const Args& args);
  // The same for arguments that differ from the last ones in the addresses of the buffers alone, with an operation that
  // unbind() does not let go of.
  void move_to(const std::byte* send, std::byte* recv) noexcept {
    if (args_.send.base) args_.send.base = send;
    if (args_.recv.base) args_.recv.base = recv;
  }
  // It no longer holds an operation of the program, and must be bound before it is started.
  void unbind() noexcept;

  // BUSY when in flight, or the team's failure.
  Status start() noexcept;
  bool in_flight() const noexcept { return in_flight_; }
  // The last run has ended well. The one question that may be asked without the context's lock.
  bool done() const noexcept { return done_.load(std::memory_order_acquire); }
  // Of the last run that ended.
  const Status& status() const noexcept { return status_; }
  // Ok, or BUFFERS_HELD: the team failed ten seconds ago, and a peer or the transport still uses buffers of this
  // request, so that it cannot end. It stays in flight.
  Status overdue() const;

  Team& team() noexcept { return team_; }
  Exchange& exchange() noexcept { return exchange_; }
  const Args& args() const noexcept { return args_; }
  const Selected& selected() const noexcept { return selected_; }
  // Of the call with the algorithm that is predicted.
  uint32_t predicted_signature() const noexcept { return signature_; }
  // "ring_pipelined:65536": of the run that was started last, or before the first one what is predicted. The text stays
  // as long as the request.
  const std::string& algorithm_name() const noexcept { return *algorithm_name_; }
  // "allgather (ring) of 8 bytes per block"
  std::string call() const noexcept;
  // Of the next run, without its number.
  const CallRecord& record() const noexcept { return record_; }
  // What this call sends to the peer and expects from it; 0 and 0 where the signature covers all sizes.
  PairBytes pair_bytes(int peer) const noexcept;

  // ---- for the team and the engine

  LearnedClass* learned() const noexcept { return selected_.learned; }
  // The next run has this algorithm.
  void use(const Learner::Call& call) noexcept {
    trial_ = call;
    if (call.candidate != used_) [[unlikely]]
      change_algorithm(call.candidate);
  }
  void use_predicted() noexcept { use({kPredicted}); }
  // All ranks have come to the run, which is timed from now on.
  void begin_timing() noexcept;
  void begin(uint32_t op) noexcept;  // makes the task
  bool has_task() const noexcept { return static_cast<bool>(task_); }
  void end(Status status) noexcept;  // drops the task
  bool waits_for_memory = false;     // in the engine's list
  bool waits_for_arrival = false;    // in the other one
  Time seen_at = 0;                  // first check() that saw this run; for deadlines
  Time probed_at = 0;
  bool in_background = false;  // of the runtime itself: no caller waits for it, so nothing limits how long it takes
  Request* next_queued = nullptr;

  // Adds what runs from now on to a trace, which outlives the request, as called from `site`.
  void trace(TraceBuffer& buffer, const void* site) noexcept {
    trace_ = &buffer;
    site_ = site;
    exchange_.trace().enable(buffer.keeps_peers());
  }

 private:
  static constexpr int kPredicted = -1;

  void change_algorithm(int candidate) noexcept;
  bool is_timed() const noexcept { return trial_.part >= Learner::Part::kFirst; }
  // One of the user, which must not be freed before this request.
  bool holds_operation() const noexcept { return args_.reduction.op && args_.reduction.op->user_defined(); }
  void hold_operation() noexcept;
  [[gnu::noinline]] Status busy() const;
  bool replaces_input() const noexcept;
  Args with_own_copy() noexcept;
  void add_to_trace() noexcept;
  int64_t traced_now() const noexcept;

  Team& team_;
  Args args_;
  const Selected selected_;
  const std::string predicted_name_;
  const uint32_t signature_;
  CallRecord record_;
  const Algorithm* algorithm_;
  const std::string* algorithm_name_;
  int used_ = kPredicted;  // the candidate that is bound
  Learner::Call trial_;    // what the run is for learning
  uint32_t round_ = 0;     // of the learner when the run began
  ibcoll_scheme_t scheme_;
  Exchange exchange_;
  Task task_;
  bool in_flight_ = false;
  std::atomic<bool> done_{false};
  Status status_;
  std::vector<uint64_t> counts_;
  TraceBuffer* trace_ = nullptr;
  const void* site_ = nullptr;
  int64_t arrived_at_ = 0;  // ns, of the run that is traced
};

}  // namespace ibcoll
