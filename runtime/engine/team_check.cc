// SPDX-License-Identifier: BSD-3-Clause
// What a team looks at while its collectives take long, and how it describes them.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/engine/request.h"
#include "runtime/engine/team.h"

namespace ibcoll {

void Team::check(Time now) noexcept {
  if (completed_ + 1 == next_op_) return;  // as most of many teams
  if (kept_abort_ && now - kept_abort_->since > engine_.limits().stall_ns) take_kept_abort();
  for (Request* const request : active_) {
    if (!request || !failure_.healthy()) continue;
    if (request->seen_at == 0) {
      request->seen_at = request->probed_at = now;
      continue;
    }
    const EngineLimits& limits = engine_.limits();
    if (limits.timeout_ns != 0 && now - request->seen_at > limits.timeout_ns) {
      fail(error(IBCOLL_ERR_TIMEOUT, "rank {}: {} did not complete in {:.1f} s ({}): it {}", rank_,
                 describe_call(request->exchange().op()), static_cast<double>(limits.timeout_ns) / 1e9,
                 limits.timeout_origin, request->exchange().describe_wait()));
    } else if (now - request->probed_at > limits.stall_ns) {
      request->probed_at = now;
      request->exchange().probe();
      check_own_line();
      if (failure_.healthy() && request->exchange().polls_memory()) find_failed_local(*request);
    }
  }
}

// Other ranks wait in vain for what was overwritten, and would blame this rank.
void Team::check_own_line() noexcept {
  if (!window_ || !failure_.healthy() || window_->steps().own_line_intact()) return;
  fail(error(IBCOLL_ERR_SYSTEM,
             "rank {}: what this rank has published in the node window is spoiled: a process has overwritten the "
             "node's shared "
             "memory by a write that is not ibcoll's; run the program with a memory checker",
             rank_));
}

// A rank whose team has failed reports that in the node window as well; it may never read another note.
void Team::find_failed_local(Request& request) noexcept {
  NodeWindow& window = request.exchange().window();
  for (int local = 0; local < window.size(); ++local) {
    const int status = window.presence().failure_of(local);
    if (local == window.rank() || status == 0) continue;
    engine_.take_from_memory();
    if (!request.in_flight() || !failure_.healthy()) return;
    return suspect(error(static_cast<ibcoll_status_t>(status),
                         "rank {}: {} cannot complete: rank {} of the job ended it with an error", rank_,
                         describe_call(request.exchange().op()), window.job_rank(local)));
  }
}

CallRecord Team::kept_call(uint32_t op) const noexcept {
  const Request* const request = active(op);
  CallRecord call = request ? request->record() : calls_[op % kKeptCalls];
  if (request) call.op = op;
  return call.op == op ? call : CallRecord{};
}

std::string Team::describe_call(uint32_t op) const noexcept {
  const CallRecord call = kept_call(op);
  if (call.op != 0) return call_text(call);
  return text_or("a collective", [&] { return fmt::format("collective #{} (ended)", op); });
}

int Team::in_flight() const noexcept {
  int count = 0;
  for (uint32_t op = completed_ + 1; op != next_op_; ++op) count += active(op) != nullptr;
  return count;
}

// Ends in what ibcoll_run reads (tools/ibcoll_run/late_ranks.h), in ranks of the job.
std::string Team::describe() const {
  std::string text;
  for (uint32_t op = completed_ + 1; op != next_op_; ++op) {
    Request* const request = active(op);
    if (!request) continue;
    std::string awaited;
    auto add = [&](int rank) { awaited += fmt::format("{}{}", awaited.empty() ? "" : ",", job_rank(rank)); };
    request->exchange().awaited([](void* to, int rank) { (*static_cast<decltype(add)*>(to))(rank); }, &add);
    const Time seen = request->seen_at;
    const double seconds = seen == 0 ? 0 : static_cast<double>(engine_.now() - seen) / 1e9;
    text += fmt::format(
        "rank {}: {} {} [call of team {} ({} ranks, the first is {}) #{} by rank {} for {:.1f} s, awaits {}]\n", rank_,
        describe_call(op), request->exchange().describe_wait(), number_, size(), job_rank(0), op, job_rank(rank_),
        seconds, awaited);
  }
  return text;
}

}  // namespace ibcoll
