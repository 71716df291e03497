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
#include "runtime/engine/call_trace.h"
#include "runtime/engine/exchange.h"
#include "runtime/engine/short_exchange.h"

namespace ibcoll {

class Team;

class Request {
 public:
  // `choice` applies to the team and the call. The count arrays that `args` points to are copied by hold_counts() only.
  // `signature`: of the call with this choice.
  Request(Team& team, const Args& args, const Choice& choice, ibcoll_scheme_t scheme, uint32_t signature);
  ~Request();
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  // Takes a private copy of the count and displacement arrays that `args` points to. Allocates the first time only.
  void hold_counts();
  // The program leaves the buffers to this request until it is destroyed: peers may keep their rights between runs.
  void keep_buffers() noexcept {
    keeps_buffers_ = true;
    exchange_.incoming().keep_rights();
  }
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
  // The status of the last run that ended.
  const Status& status() const noexcept { return status_; }
  // Ok, or BUFFERS_HELD: the team failed ten seconds ago, and a peer or the transport still uses buffers of this
  // request, so that it cannot end. It stays in flight.
  Status overdue() const;

  Team& team() noexcept { return team_; }
  Exchange& exchange() noexcept { return exchange_; }
  const Exchange& exchange() const noexcept { return exchange_; }
  const Args& args() const noexcept { return args_; }
  const Choice& choice() const noexcept { return choice_; }
  // "ring_pipelined:65536"
  const std::string& algorithm_name() const noexcept { return algorithm_name_; }
  // "allgather (ring) of 8 bytes per block"
  std::string call() const noexcept;
  // Without the number of a run.
  const CallRecord& record() const noexcept { return record_; }
  CallTrace& trace() noexcept { return trace_; }

  // The step of the call with these sizes; none where it is more than a step, or the team has ranks on other nodes.
  const OneStep& one_step() const noexcept { return one_step_; }

  // The exchange of the call with these sizes; none where it is more than an exchange of short messages.
  ShortExchange& short_exchange() noexcept { return short_exchange_; }
  // A blocking call may be made without a task.
  bool may_be_short() const noexcept { return one_step_ || short_exchange_; }

  // ---- for the team and the engine

  // Makes the task. False: there is no memory for it.
  bool begin(uint32_t op) noexcept;
  // These make the task of a call of one step that this rank has published, or of an exchange that it has begun.
  bool begin_published(uint32_t op) noexcept;
  bool begin_exchanged(uint32_t op) noexcept;
  void end(Status status) noexcept;  // drops the task
  bool waits_for_memory = false;     // in the engine's list
  bool waits_for_arrival = false;    // in the other one
  Time seen_at = 0;                  // first check() that saw this run; for deadlines
  Time probed_at = 0;

 private:
  // One of the user, which must not be freed before this request.
  bool holds_operation() const noexcept { return args_.reduction.op && args_.reduction.op->user_defined(); }
  void hold_operation() noexcept;
  void find_short_way();
  // The first start takes the memory that a task needs: later ones allocate nothing, whichever way they go.
  bool may_start_short() const noexcept {
    return one_step_ && !trace_.enabled() && (has_had_task_ || one_step_.kind == OneStep::Kind::kNothing);
  }
  bool start_short() noexcept;
  void enter_flight() noexcept;
  [[gnu::noinline]] Status busy() const;
  std::string buffers_held_by() const;  // of a call that has failed
  bool replaces_input() const noexcept;
  Args with_own_copy() noexcept;
  bool enter_task() noexcept;

  Team& team_;
  Args args_;
  const Choice choice_;
  const std::string algorithm_name_;
  const CallRecord record_;
  ibcoll_scheme_t scheme_;
  Exchange exchange_;
  Task task_;
  OneStep one_step_;
  ShortExchange short_exchange_;
  bool in_flight_ = false;
  bool has_had_task_ = false;
  bool keeps_buffers_ = false;
  std::atomic<bool> done_{false};
  Status status_;
  std::vector<uint64_t> counts_;
  CallTrace trace_{*this};
};

}  // namespace ibcoll
