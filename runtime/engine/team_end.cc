// SPDX-License-Identifier: BSD-3-Clause
// How a team ends with an error: what fails it, which ranks it notifies, and when its requests return their buffers.
#include <algorithm>

#include "runtime/base/log.h"
#include "runtime/engine/request.h"
#include "runtime/engine/team.h"

namespace ibcoll {

void Team::fail(Status status) noexcept {
  if (failure_.fail(std::move(status), engine_.now())) begin_to_fail();
}

void Team::suspect(Status status) noexcept {
  if (failure_.suspect(std::move(status), engine_.now())) begin_to_fail();
}

void Team::suspect_call(int peer, uint32_t op, Status status) noexcept {
  if (!failure_.healthy()) return;
  failed_op_ = op;
  suspect(std::move(status));
  other_peer_ = peer;
  other_op_ = op;
  ask_at_ = engine_.now();
  ask();
}

void Team::abort(Status status) noexcept {
  if (!failure_.healthy()) return;
  failed_op_ = next_op_;
  fail(std::move(status));
}

// A question or an answer may find no room to leave, so both are called until the suspicion ends.
void Team::answer() noexcept {
  if (answer_to_ >= 0 && can_send(answer_to_) && send_calls(answer_to_, answer_op_, Probe::kAnswers)) answer_to_ = -1;
}

void Team::ask() noexcept {
  constexpr Time kForRoom = 5'000'000, kForAnswer = 20'000'000;
  const bool asks = failure_.state() == TeamFailure::State::kSuspected && !failure_.explained() && other_peer_ >= 0;
  const Time now = engine_.now();
  if (!asks || now < ask_at_ || !can_send(other_peer_)) return;
  ask_at_ = now + (send_calls(other_peer_, other_op_, Probe::kSuspects) ? kForAnswer : kForRoom);
}

Status Team::death_of(int peer, std::string_view why) const noexcept {
  return error(IBCOLL_ERR_PEER_FAILED, "rank {} of the job (rank {} of the team) failed: {}", job_rank(peer), peer,
               why);
}

void Team::on_peer_failed(int peer, std::string_view why) noexcept {
  if (failure_.see_death(peer, death_of(peer, why), engine_.now())) begin_to_fail();
}

void Team::explain_death(int peer, std::string_view how) noexcept { failure_.explain_death(peer, death_of(peer, how)); }

void Team::begin_to_fail() noexcept {
  log(LogLevel::kInfo, "team {} ({} ranks, the first is {}): {}", number_, size(), job_rank(0),
      failure_.status().text());
  engine_.team_failed();
}

// False: not now. A rank that is not notified in time asks by a probe. A rank that opens no connections any more, or
// cannot reach some rank, may not be able to notify all.
bool Team::send_abort(int peer) noexcept {
  Note note = abort_note(epoch_, failure_.status(), completed_, failed_op_);
  note.index = connects_ && !engine_.lacks_a_way() ? kNotifiesAll : kPassOn;
  return send(peer, note, abort_text(failure_.status()));
}

bool Team::can_send(int peer) noexcept {
  const int job = job_rank(peer);
  return engine_.reaches(job) && (connects_ || !transport(peer).would_connect(job));
}

// Tries to notify each rank that can be reached and was not notified yet, once.
void Team::notify_failure() noexcept {
  failure_.notify([this](int peer) { return !can_send(peer) || send_abort(peer); });
}

Note Team::abort_note(uint64_t epoch, const Status& failure, uint32_t completed, uint32_t failed_op) noexcept {
  const auto code = static_cast<uint64_t>(static_cast<int64_t>(failure.code()));
  return {epoch, code, failed_op, 0, completed, static_cast<uint16_t>(NoteKind::kAbort), 0};
}

ConstBytes Team::abort_text(const Status& failure) noexcept {
  constexpr size_t kMostText = 1024;
  return std::as_bytes(std::span(failure.text())).first(std::min(failure.text().size(), kMostText));
}

// For a team that is freed: others may wait for what this rank knows, and it may have learned that in the call before.
// Requests that were given up may be destroyed already.
void Team::notify_pending() noexcept {
  constexpr int kMostTries = 1'000;
  failure_.cut_suspicion();
  for (int tries = 0; !failure_.all_notified() && tries < kMostTries; ++tries) {
    notify_failure();
    if (in_flight() > 0) return;
    if (!failure_.all_notified()) engine_.progress();
  }
}

bool Team::end_requests() noexcept {
  if (failure_.healthy()) return true;
  if (failure_.uncertain() && !failure_.end_suspicion(engine_.now())) {
    answer();
    ask();
    return false;
  }
  if (window_) window_->presence().report_failure(failure_.status().code());
  notify_failure();
  const bool notified = failure_.state() == TeamFailure::State::kNotified;
  bool idle = true;
  for (size_t i = 0; i < active_.size(); ++i) {
    Request* const request = active_[i];
    if (!request) continue;
    // Buffers must not be returned while the transport reads them, or a peer writes to them. The right to write is
    // revoked at once, whatever else is under way.
    const bool concealed = request->exchange().conceal();
    const bool sent = request->exchange().puts_pending() == 0;
    if (!sent) want_back();
    if (notified && concealed && sent)
      finish(*request);
    else
      idle = false;
  }
  return notified && idle;
}

void Team::want_back() noexcept {
  for (int i = 0; i < size(); ++i)
    if (i != rank_) transport(i).want_back(job_rank(i));
}

}  // namespace ibcoll
