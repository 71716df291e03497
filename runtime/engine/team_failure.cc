// SPDX-License-Identifier: BSD-3-Clause
// How a team fails: what is known, what is doubted, and who is told.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/log.h"
#include "runtime/engine/request.h"
#include "runtime/engine/team.h"

namespace ibcoll {
namespace {

constexpr Time kDoubt = 100'000'000;  // the note of a rank that knows better is here by then
constexpr Time kTurn = 37'000'000;    // ranks come out of doubt one after the other, and the first one tells the others

}  // namespace

void Team::fail(Status status, bool tell) noexcept {
  if (!failure_.ok()) return;
  failure_ = std::move(status);
  failed_at_ = engine_.now();
  log(LogLevel::kInfo, "team {:x}: {}", epoch_, failure_.text());
  if (tell)
    for (int i = 0; i < size(); ++i)
      if (i != rank_) abort_untold_.push_back(i);
  abort_tries_ = 0;
  engine_.team_failed();
}

void Team::suspect(Status status) noexcept { fail_in_doubt(std::move(status), Doubt::kSuspicion); }

void Team::on_peer_failed(int peer, const std::string& why) noexcept {
  fail_in_doubt(
      error(IBCOLL_ERR_PEER_FAILED, "rank {} of the job (rank {} of the team) failed: {}", job_rank(peer), peer, why),
      Doubt::kDeath);
}

// A death explains what was suspected. It may itself be an effect: a rank that is told of a failure ends, too, and its
// neighbours see that before the note that told it has come to them.
void Team::fail_in_doubt(Status status, Doubt doubt) noexcept {
  const bool explains = doubt_ == Doubt::kSuspicion && doubt == Doubt::kDeath;
  if (explains) failure_ = Status();
  if (!failure_.ok()) return;
  fail(std::move(status), !explains);  // else whom to tell is listed already
  doubt_ = doubt;
  doubtful_until_ = engine_.now() + kDoubt + rank_ * kTurn % kDoubt;
}

// False: not now. Whoever is not told in time asks by a probe.
bool Team::tell_abort(int peer) noexcept {
  return send(peer, abort_note(epoch_, failure_, completed_), abort_text(failure_));
}

Note Team::abort_note(uint64_t epoch, const Status& failure, uint32_t completed) noexcept {
  const auto code = static_cast<uint64_t>(static_cast<int64_t>(failure.code()));
  return {epoch, code, 0, 0, completed, static_cast<uint16_t>(NoteKind::kAbort), 0};
}

ConstBytes Team::abort_text(const Status& failure) noexcept {
  constexpr size_t kMostText = 1024;
  return std::as_bytes(std::span(failure.text())).first(std::min(failure.text().size(), kMostText));
}

// For a team that is freed: others may wait for what this rank knows, and it may have learned that in the call before.
// Requests that were given up may be gone already.
void Team::tell_untold() noexcept {
  constexpr int kMostTries = 1'000;
  doubt_ = Doubt::kNone;
  for (int tries = 0; !abort_untold_.empty() && tries < kMostTries; ++tries) {
    std::erase_if(abort_untold_, [&](int i) { return engine_.dead(job_rank(i)) || tell_abort(i); });
    if (in_flight() > 0) return;
    if (!abort_untold_.empty()) engine_.progress();
  }
}

bool Team::end_requests() noexcept {
  if (failure_.ok()) return true;
  if (doubt_ != Doubt::kNone) {
    if (engine_.now() < doubtful_until_) return false;
    doubt_ = Doubt::kNone;
    failed_at_ = engine_.now();
  }
  if (window_) window_->leave(failure_.code());
  constexpr int kMostTries = 10'000;
  std::erase_if(abort_untold_, [&](int i) { return engine_.dead(job_rank(i)) || tell_abort(i); });
  const bool told = abort_untold_.empty() || ++abort_tries_ >= kMostTries;
  bool idle = true;
  for (size_t i = 0; i < active_.size(); ++i) {
    Request* const request = active_[i];
    if (!request) continue;
    // Buffers must not be given back while the transport reads them, or a peer writes to them. The right to write is
    // taken back at once, whatever else is under way.
    const bool concealed = request->exchange().conceal();
    const bool sent = request->exchange().puts_pending() == 0;
    if (!sent) want_back();
    if (told && concealed && sent)
      finish(*request);
    else
      idle = false;
  }
  return told && idle;
}

void Team::want_back() noexcept {
  for (int i = 0; i < size(); ++i)
    if (i != rank_) transport(i).want_back(job_rank(i));
}

void Team::check(Time now) noexcept {
  for (Request* const request : active_) {
    if (!request || !failure_.ok()) continue;
    if (request->seen_at == 0) {
      request->seen_at = request->probed_at = now;
      continue;
    }
    const EngineLimits& limits = engine_.limits();
    if (limits.timeout_ns != 0 && now - request->seen_at > limits.timeout_ns) {
      fail(error(IBCOLL_ERR_TIMEOUT, "rank {}: {} did not complete in {:.1f} s (IBCOLL_TIMEOUT): it {}", rank_,
                 describe_call(request->exchange().op()), static_cast<double>(limits.timeout_ns) / 1e9,
                 request->exchange().describe_wait()));
    } else if (now - request->probed_at > limits.stall_ns) {
      request->probed_at = now;
      request->exchange().probe(*request);
      check_own_line();
      if (failure_.ok() && request->exchange().polls_memory()) look_who_left(*request);
    }
  }
}

// Others wait in vain for what was overwritten, and would blame this rank.
void Team::check_own_line() noexcept {
  if (!window_ || !failure_.ok() || window_->own_line_intact()) return;
  fail(error(
      IBCOLL_ERR_SYSTEM,
      "rank {}: what this rank has published in the node window is spoiled: a process has written to the node's shared "
      "memory what ibcoll did not tell it to; run the program with a checker of memory",
      rank_));
}

// A rank that has given up says so in the node window as well; it may never take another note.
void Team::look_who_left(Request& request) noexcept {
  NodeWindow& window = request.exchange().window();
  for (int local = 0; local < window.size(); ++local) {
    const int status = window.left(local);
    if (local == window.rank() || status == 0) continue;
    engine_.take_from_memory();
    if (!request.in_flight() || !failure_.ok()) return;
    return suspect(error(static_cast<ibcoll_status_t>(status),
                         "rank {}: {} cannot complete: rank {} of the job ended it with an error", rank_,
                         describe_call(request.exchange().op()), window.job_rank(local)));
  }
}

std::string Team::describe_call(uint32_t op) const {
  const Request* const request = active(op);
  return request ? fmt::format("{} #{}", request->call(), op) : fmt::format("collective #{} (ended)", op);
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
    text += fmt::format("rank {}: {} {} [call of team {} #{} by rank {} for {:.1f} s, awaits {}]\n", rank_,
                        describe_call(op), request->exchange().describe_wait(), epoch_, op, job_rank(rank_), seconds,
                        awaited);
  }
  return text;
}

}  // namespace ibcoll
