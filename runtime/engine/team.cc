// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/team.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "runtime/engine/request.h"

namespace ibcoll {
namespace {

constexpr size_t kFirstActive = 64;

std::string_view text_of(ConstBytes payload) { return {reinterpret_cast<const char*>(payload.data()), payload.size()}; }

}  // namespace

Team::Team(Engine& engine, uint64_t epoch, std::shared_ptr<const Placement> placement, int rank,
           std::unique_ptr<NodeWindow> window)
    : engine_(engine),
      epoch_(epoch),
      placement_(std::move(placement)),
      rank_(rank),
      window_(std::move(window)),
      credit_(engine.limits()),
      active_(kFirstActive, nullptr),
      failure_(rank, size()) {
  bool same = true;
  for (int i = 0; i < size(); ++i) same = same && job_rank(i) == i;
  if (!same) {
    team_ranks_.assign(static_cast<size_t>(engine_.size()), -1);
    for (int i = 0; i < size(); ++i) team_ranks_[static_cast<size_t>(job_rank(i))] = i;
  }
  engine_.add(*this);
}

Team::~Team() {
  notify_pending();
  for (uint32_t i = 0; early_ && i < kEarlyLists; ++i)
    while (EarlyMessage* const early = early_[i].head) {
      early_[i].head = early->next;
      engine_.recycle(early);
    }
  engine_.remove(*this);
}

int Team::team_rank(int job_rank) const noexcept {
  if (team_ranks_.empty()) return job_rank < size() ? job_rank : -1;
  return team_ranks_[static_cast<size_t>(job_rank)];
}

// ---------------------------------------------------------------- collectives

bool Team::start(Request& request) noexcept {
  if (active_[next_op_ & (active_.size() - 1)] && !make_room(next_op_)) {
    fail(error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory to start {}", rank_, request.call()));
    return false;
  }
  const uint32_t op = next_op_++;
  active_[op & (active_.size() - 1)] = &request;
  CallRecord& record = calls_[op % kKeptCalls];
  record = request.record();
  record.op = op;
  request.begin(op);
  if (!request.has_task()) {
    fail(error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory to start {}", rank_, request.call()));
    return true;
  }
  if (!failure_.healthy()) return true;
  engine_.run(request);
  if (early_) deliver_early(request);
  return true;
}

// Holds the collectives in flight, and grows where one of them is that old.
bool Team::make_room(uint32_t op) noexcept {
  try {
    while (active_[op & (active_.size() - 1)]) {
      std::vector<Request*> larger(2 * active_.size(), nullptr);
      for (Request* const r : active_)
        if (r) larger[r->exchange().op() & (larger.size() - 1)] = r;
      active_ = std::move(larger);
    }
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

Request* Team::active(uint32_t op) const noexcept {
  Request* const request = active_[op & (active_.size() - 1)];
  return request && request->exchange().op() == op ? request : nullptr;
}

// The call may be complete before the last of them: what it does not take any more is as wrong as if it came later.
void Team::deliver_early(Request& request) noexcept {
  const uint32_t op = request.exchange().op();
  EarlyList& list = early_[op % kEarlyLists];
  for (EarlyMessage** at = &list.head; *at && failure_.healthy();) {
    EarlyMessage* const early = *at;
    if (early->note.op != op) {
      at = &early->next;
      continue;
    }
    *at = early->next;
    if (!*at) list.tail = at;
    on_message(early->peer, early->note, ConstBytes(early->payload(), early->bytes));
    engine_.recycle(early);
  }
}

void Team::finish(Request& request) noexcept {
  const uint32_t op = request.exchange().op();
  if (!failure_.healthy()) [[unlikely]]
    last_ended_ = failed_op_ != 0 && is_after(op, failed_op_) ? Ended::kInFlight : Ended::kAsFailed;
  active_[op & (active_.size() - 1)] = nullptr;
  request.end(connects_ ? failure_.report() : failure_.status());  // else the call is not the program's
  while (completed_ + 1 != next_op_ && !active(completed_ + 1)) ++completed_;
  if (kept_abort_ && !runs_before(kept_abort_->note.op)) [[unlikely]]
    take_kept_abort();
}

// ---------------------------------------------------------------- notes

void Team::on_note(int peer, const Note& note, ConstBytes payload) noexcept {
  const auto kind = static_cast<NoteKind>(note.kind);
  if (credit_.peer_completed(peer, note.completed) && kind == NoteKind::kProbe) engine_.question_brought_credit();
  if (kind == NoteKind::kAbort) {
    on_abort(peer, note, payload);
    return;
  }
  const bool asks = kind == NoteKind::kProbe && static_cast<Probe>(note.index) != Probe::kAnswers;
  if (failure_.certain() && asks) send_abort(peer);  // it may have missed it
  if (!failure_.certain() && kind == NoteKind::kProbe) {
    on_probe(peer, note, payload);
    return;
  }
  if (!failure_.healthy()) return;
  if (kind == NoteKind::kCompleted) {
    if (note.index == kWantsCredit && credit_.wanted(peer)) engine_.credit_is_due();
    return;
  }
  if (kind == NoteKind::kEnded) {
    if (Request* const request = active(note.op)) request->exchange().on_ended(peer);
    return;
  }
  if (static_cast<int32_t>(note.op - next_op_) < 0) {
    on_message(peer, note, payload);
    return;
  }
  keep_early(peer, note, payload);
}

void Team::keep_early(int peer, const Note& note, ConstBytes payload) noexcept {
  if (!early_) early_.reset(new (std::nothrow) EarlyList[kEarlyLists]);
  EarlyMessage* const early = early_ ? engine_.early_message(peer, note, payload) : nullptr;
  if (!early) {
    fail(error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory to keep {} bytes that rank {} sent early", rank_,
               payload.size(), peer));
    return;
  }
  EarlyList& list = early_[note.op % kEarlyLists];
  early->next = nullptr;
  *list.tail = early;
  list.tail = &early->next;
}

// Another rank reports a failure. What shared memory holds by now came before that.
void Team::on_abort(int peer, const Note& note, ConstBytes payload) noexcept {
  if (failure_.healthy()) engine_.take_from_memory();
  if (!failure_.certain() && !keep_abort(peer, note, payload)) learn_abort(peer, note, payload);
}

void Team::learn_abort(int peer, const Note& note, ConstBytes payload) noexcept {
  const auto code = static_cast<ibcoll_status_t>(static_cast<int64_t>(note.bytes));
  Status reported = error(code, "{} (reported by rank {} of the team)", text_of(payload), peer);
  if (!failure_.learn(std::move(reported), engine_.now(), note.index == kPassOn)) return;
  failed_op_ = note.op;
  begin_to_fail();
}

// All ranks have made the calls before the one that failed, and those that have completed them have sent all that others
// need. So they end well here, too.
bool Team::keep_abort(int peer, const Note& note, ConstBytes payload) noexcept {
  if (!failure_.healthy() || note.op == 0 || !runs_before(note.op)) return false;
  if (kept_abort_) return true;
  try {
    kept_abort_ =
        std::make_unique<KeptAbort>(KeptAbort{peer, note, std::vector(payload.begin(), payload.end()), engine_.now()});
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void Team::take_kept_abort() noexcept {
  const std::unique_ptr<KeptAbort> kept = std::move(kept_abort_);
  if (!failure_.certain()) learn_abort(kept->peer, kept->note, kept->text);
}

bool Team::runs_before(uint32_t op) const noexcept {
  for (uint32_t earlier = completed_ + 1; earlier != next_op_ && is_after(op, earlier); ++earlier)
    if (active(earlier)) return true;
  return false;
}

// Of a collective that was started here. When it has ended, credit may still come, data may not.
void Team::on_message(int peer, const Note& note, ConstBytes payload) noexcept {
  if (Request* const request = active(note.op)) {
    request->exchange().on_note(peer, note, payload);
    if (failure_.healthy() && request->exchange().runnable()) engine_.run(*request);
  } else if (static_cast<NoteKind>(note.kind) != NoteKind::kConsumed) {
    suspect_call(peer, note.op,
                 error(IBCOLL_ERR_MISMATCH,
                       "rank {}: rank {} sent {} bytes (message {}, note {}) in collective #{}, which has ended here "
                       "without them; {}",
                       rank_, peer, note.bytes, note.index, note.kind, note.op, kSameCalls));
  }
}

bool Team::send_calls(int peer, uint32_t op, Probe probe) noexcept {
  std::array<std::byte, sizeof(PairBytes) + kProbedCalls * sizeof(CallRecord)> payload;
  const Request* const request = active(op);
  const PairBytes bytes = request ? request->pair_bytes(peer) : PairBytes{};
  std::memcpy(payload.data(), &bytes, sizeof bytes);
  size_t used = sizeof bytes;
  // Of a call that is too old to be kept, the oldest ones are sent that are.
  const uint32_t oldest = next_op_ - kKeptCalls, count = probe == Probe::kAnswers ? 1 : kProbedCalls;
  const uint32_t last = static_cast<int32_t>(op - oldest) < 0 ? oldest + count - 1 : op;
  for (uint32_t before = count; before-- > 0;) {
    const CallRecord call = kept_call(last - before);
    if (call.op == 0) continue;
    std::memcpy(payload.data() + used, &call, sizeof call);
    used += sizeof call;
  }
  const Note note{
      epoch_, used, op, 0, completed_, static_cast<uint16_t>(NoteKind::kProbe), static_cast<uint16_t>(probe)};
  return send(peer, note, std::span(payload).first(used));
}

// The first call that differs explains whatever has gone wrong in it, or since.
bool Team::find_other_call(int peer, ConstBytes records, Probe probe) noexcept {
  for (CallRecord theirs; records.size() >= sizeof theirs; records = records.subspan(sizeof theirs)) {
    std::memcpy(&theirs, records.data(), sizeof theirs);
    const CallRecord mine = kept_call(theirs.op);
    if (mine.op == 0 || mine.signature == theirs.signature) continue;
    if (!failure_.explained()) {
      const Status both = error(IBCOLL_ERR_MISMATCH, "rank {} calls {}, but rank {} calls {}; {}", peer,
                                call_text(theirs), rank_, call_text(mine), kSameCalls);
      suspect(both);
      failure_.explain(both);
      failed_op_ = theirs.op;
    }
    if (probe == Probe::kAnswers) return true;
    answer_to_ = peer;
    answer_op_ = theirs.op;
    answer();
    return true;
  }
  return false;
}

void Team::on_probe(int peer, const Note& note, ConstBytes payload) noexcept {
  if (payload.size() < sizeof(PairBytes)) return;
  check_own_line();
  const auto probe = static_cast<Probe>(note.index);
  if (find_other_call(peer, payload.subspan(sizeof(PairBytes)), probe)) return;
  if (!failure_.healthy() || probe != Probe::kWaits) return;
  if (Request* const request = active(note.op)) {
    PairBytes theirs;
    std::memcpy(&theirs, payload.data(), sizeof theirs);
    const PairBytes mine = request->pair_bytes(peer);
    if (theirs.sent != mine.received)
      request->exchange().mismatch(peer, theirs.sent, mine.received, "bytes that it sends here");
    else if (theirs.received != mine.sent)
      request->exchange().mismatch(peer, theirs.received, mine.sent, "bytes that it gets from here");
  } else if (static_cast<int32_t>(note.op - next_op_) < 0) {
    (void)send(peer, {epoch_, 0, note.op, note.signature, completed_, static_cast<uint16_t>(NoteKind::kEnded), 0}, {});
  }
}

bool Team::send(int peer, const Note& note, ConstBytes payload) noexcept {
  try {
    if (!transport(peer).send(job_rank(peer), note, payload)) return false;
  } catch (const std::bad_alloc&) {
    fail(error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory to send to rank {}", rank_, peer));
    return false;
  }
  credit_.note_left(peer, completed_);
  return true;
}

RemoteRegion Team::expose(int peer, Bytes memory) noexcept {
  try {
    return transport(peer).expose(job_rank(peer), memory);
  } catch (const std::bad_alloc&) {
    return {};
  }
}

PutResult Team::put(int peer, const RemoteRegion& to, ConstBytes from, const Note& note, uint64_t token) noexcept {
  PutResult result = PutResult::kBusy;
  try {
    result = transport(peer).put(job_rank(peer), to, from, note, token);
  } catch (const std::bad_alloc&) {
    fail(error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory to write to rank {}", rank_, peer));
  }
  if (result != PutResult::kBusy) credit_.note_left(peer, completed_);
  return result;
}

void Team::ask_for_credit(int peer) noexcept {
  if (credit_.must_ask(peer) && send(peer, completed_note(kWantsCredit), {})) credit_.asked(peer);
}

bool Team::report_completed() noexcept {
  if (!failure_.healthy() || parting_) return true;  // it starts no more collectives
  return credit_.return_due(completed_, [this](int peer) { (void)send(peer, completed_note(kReturnsCredit), {}); });
}

}  // namespace ibcoll
