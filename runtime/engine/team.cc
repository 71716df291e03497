// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/team.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "runtime/engine/request.h"
#include "runtime/machine/core_hints.h"
#include "runtime/machine/simulation.h"

namespace ibcoll {

Team::Team(Engine& engine, uint64_t epoch, std::shared_ptr<const Placement> placement, int rank,
           std::unique_ptr<NodeWindow> window)
    : engine_(engine),
      window_(std::move(window)),
      members_(epoch, std::move(placement), rank, engine.size()),
      calls_(engine.limits().calls_at_once),
      health_(engine, members_, window_.get()),
      links_(engine, members_, calls_, health_),
      questions_(engine, members_, calls_, health_, links_),
      notices_(engine, calls_, health_, links_) {
  engine_.add(*this);
}

Team::~Team() {
  notify_before_end();
  for (uint32_t i = 0; early_ && i < kEarlyLists; ++i) engine_.early_messages().recycle(early_[i]);
  engine_.remove(*this);
}

// ---------------------------------------------------------------- collectives

bool Team::start(Request& request) noexcept {
  if (!calls_.make_room()) {
    lack_memory(request);
    return false;
  }
  begin<&Request::begin>(request);
  return true;
}

void Team::lack_memory(const Request& request) noexcept {
  health_.fail(error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory to start {}", rank(), request.call()));
}

// From now on the request is in flight.
template <bool (Request::*kBegin)(uint32_t op) noexcept>
void Team::begin(Request& request) noexcept {
  if (!(request.*kBegin)(calls_.add(request))) lack_memory(request);
  if (!health_.good()) return engine_.team_failed();  // which may have found nothing in flight before
  engine_.scheduler().run(request);
  if (early_count_ > 0) deliver_early(request);
}

// The ranks from first to end - 1, this one's own call. False: not yet, or a rank is in another call.
inline bool Team::has_published(int first, int end, uint32_t looks) const noexcept {
  const WindowSteps& steps = std::as_const(*window_).steps();
  for (int i = first; i < end; ++i) {
    if (i == steps.rank()) continue;
    for (; !steps.published(i, WindowSteps::kWhole); --looks) {
      if (looks == 0) return false;
      relax();
    }
    if (steps.digest(i) != steps.digest(steps.rank())) [[unlikely]]
      return false;
  }
  return true;
}

// Begins with what may refuse; from the publication on the call is under way.
Team::Short Team::run_short(Request& request, uint32_t looks) noexcept {
  if (!health_.good() || !calls_.idle()) [[unlikely]]
    return Short::kNo;
  const OneStep& step = request.one_step();
  if (!step) return run_exchange(request, looks);
  if (early_count_ > 0) [[unlikely]]
    return Short::kNo;
  if (step.kind == OneStep::Kind::kNothing) {
    calls_.pass(request.record());
    return Short::kDone;
  }
  if (window_->wants_notice() || !step.try_begin(window_->steps())) [[unlikely]]
    return Short::kNo;
  if (step.write) step.write(*window_, request.args());
  if (step.publishes_last)
    window_->publish_part(request.record().signature, /*worth_waking=*/false);
  else
    window_->publish(request.record().signature);
  if (!has_published(step.first, step.end, looks)) [[unlikely]]
    return hand_over<&Request::begin_published>(request);
  if (step.finish && step.finish(*window_, request.args())) [[unlikely]]
    return hand_over<&Request::begin_published>(request);  // which reports it
  if (step.publishes_last) window_->publish(request.record().signature);
  calls_.pass(request.record());
  return Short::kDone;
}

// A call that has all it needs completes, although the team may have failed meanwhile.
Team::Short Team::run_exchange(Request& request, uint32_t looks) noexcept {
  ShortExchange& exchange = request.short_exchange();
  const uint32_t op = calls_.next();
  exchange.begin(request.args(), op, request.record().signature);
  // First this rank's own messages: what it takes may be combined in place of the operand.
  if (exchange.send()) [[likely]] {
    if (early_count_ > 0) take_early(exchange, op);
    running_ = &exchange;
    looks = std::max(1U, looks);
    while (!exchange.complete() && !exchange.refused() && health_.good() && engine_.take_messages(looks)) {
    }
    running_ = nullptr;
  }
  if (!exchange.complete()) [[unlikely]]
    return hand_over<&Request::begin_exchanged>(request);
  if (exchange.return_credit()) engine_.credit_is_due();
  calls_.pass(request.record());
  return Short::kDone;
}

// What the call does not take stays where it is.
void Team::take_early(ShortExchange& exchange, uint32_t op) noexcept {
  EarlyList& list = early_[op % kEarlyLists];
  for (EarlyMessage** at = &list.head; *at;) {
    EarlyMessage* const early = *at;
    if (!exchange.take(early->peer, early->note, early->payload())) {
      if (early->note.op == op) exchange.refuse();
      at = &early->next;
      continue;
    }
    engine_.early_messages().recycle(list.take(at));
    --early_count_;
  }
}

void Team::finish(Request& request) noexcept {
  const uint32_t op = request.exchange().op();
  health_.ends(op);
  calls_.remove(op);
  TeamFailure& failure = health_.failure();
  request.end(links_.connects() ? failure.report() : failure.status());  // else the call is not the program's
  notices_.look_at_kept();
}

// ---------------------------------------------------------------- notes

void Team::on_note(int peer, const Note& note, ConstBytes payload) noexcept {
  if (running_ && running_->take(peer, note, payload)) return;
  const auto kind = static_cast<NoteKind>(note.kind);
  const bool probes = kind == NoteKind::kProbe, certain = health_.failure().certain();
  if (links_.credit().peer_completed(peer, note.completed) && probes) engine_.scheduler().question_brought_credit();
  if (kind == NoteKind::kAbort) return notices_.on_abort(peer, note, payload);
  if (certain && probes && CallQuestions::asks(note)) (void)notices_.send(peer);  // it may have missed it
  if (!certain && probes) return questions_.on_probe(peer, note, payload);
  if (!health_.good()) return;
  if (kind == NoteKind::kCompleted) return links_.on_completed(peer, note);
  if (kind == NoteKind::kEnded) {
    if (Request* const request = calls_.find(note.op)) request->exchange().on_ended(peer);
    return;
  }
  if (calls_.begun(note.op))
    on_message(peer, note, payload);
  else
    keep_early(peer, note, payload);
}

void Team::keep_early(int peer, const Note& note, ConstBytes payload) noexcept {
  if (running_ && note.op == calls_.next()) running_->refuse();
  if (!early_) early_.reset(new (std::nothrow) EarlyList[kEarlyLists]);
  EarlyMessage* const early = early_ ? engine_.early_messages().copy(peer, note, payload) : nullptr;
  if (early) {
    ++early_count_;
    return early_[note.op % kEarlyLists].push(early);
  }
  health_.fail(error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory to keep {} bytes that rank {} sent early", rank(),
                     payload.size(), peer));
}

// The call may be complete before the last of them: what it does not take any more is as wrong as if it came later.
void Team::deliver_early(Request& request) noexcept {
  const uint32_t op = request.exchange().op();
  EarlyList& list = early_[op % kEarlyLists];
  for (EarlyMessage** at = &list.head; *at && health_.good();) {
    if ((*at)->note.op != op) {
      at = &(*at)->next;
      continue;
    }
    EarlyMessage* const early = list.take(at);
    --early_count_;
    simulate_copy_of(early->payload().data(), early->payload().size());
    on_message(early->peer, early->note, early->payload());
    engine_.early_messages().recycle(early);
  }
}

// Handles a message of a collective that was started here. After its end credit may still come, and advertisements of
// messages that were spilled whole while these were on their way; data may not.
void Team::on_message(int peer, const Note& note, ConstBytes payload) noexcept {
  if (Request* const request = calls_.find(note.op)) {
    request->exchange().on_note(peer, note, payload);
    engine_.scheduler().run_if_ready(request->exchange());
  } else if (const auto kind = static_cast<NoteKind>(note.kind);
             kind != NoteKind::kConsumed && !(kind == NoteKind::kAnnounce && links_.credit().spilled_to(peer) > 0)) {
    questions_.suspect(
        peer, note.op,
        error(IBCOLL_ERR_MISMATCH,
              "rank {}: rank {} sent {} bytes (message {}, note {}) in collective #{}, which has ended here "
              "without them; {}",
              rank(), peer, note.bytes, note.index, note.kind, note.op, kSameCalls));
  }
}

// ---------------------------------------------------------------- failures

void Team::on_peer_failed(int job_rank, std::string_view why) noexcept {
  if (const int peer = members_.team_rank(job_rank); peer >= 0) health_.on_death(peer, why);
}

void Team::explain_death(int job_rank, std::string_view how) noexcept {
  if (const int peer = members_.team_rank(job_rank); peer >= 0) health_.explain_death(peer, how);
}

bool Team::end_requests() noexcept {
  if (health_.good()) return true;
  TeamFailure& failure = health_.failure();
  if (failure.uncertain() && !failure.end_suspicion(engine_.now())) {
    questions_.repeat();
    return false;
  }
  if (window_) window_->presence().report_failure(failure.status().code());
  notices_.send_pending();
  engine_.end_rests();
  const bool notified = failure.state() == TeamFailure::State::kNotified;
  bool idle = true;
  calls_.for_each([&](Request& request) {
    // Buffers must not be returned while the transport reads them, or a peer writes to them. The right to write is
    // revoked at once, whatever else is under way.
    const bool concealed = request.exchange().incoming().conceal();
    const bool sent = request.exchange().outgoing().puts_pending() == 0;
    if (!sent) links_.want_back();
    if (notified && concealed && sent)
      finish(request);
    else
      idle = false;
  });
  return notified && idle;
}

// For a team that is freed: others may wait for what this rank knows, and it may have learned that in the call before.
// Requests that were given up may be destroyed already.
void Team::notify_before_end() noexcept {
  constexpr int kMostTries = 1'000;
  TeamFailure& failure = health_.failure();
  failure.cut_suspicion();
  for (int tries = 0; !failure.all_notified() && tries < kMostTries; ++tries) {
    notices_.send_pending();
    if (!calls_.idle()) return;
    if (!failure.all_notified()) engine_.progress();
  }
}

// ---------------------------------------------------------------- calls that take long

void Team::check(Time now) noexcept {
  if (calls_.idle()) return;  // as most of many teams
  notices_.look_at_kept();
  calls_.for_each([&](Request& request) {
    if (health_.good()) check_call(request, now);
  });
}

void Team::check_call(Request& request, Time now) noexcept {
  if (request.seen_at == 0) {
    request.seen_at = request.probed_at = now;
    return;
  }
  const EngineLimits& limits = engine_.limits();
  if (limits.timeout_ns != 0 && now - request.seen_at > limits.timeout_ns) {
    health_.fail(error(IBCOLL_ERR_TIMEOUT, "rank {}: {} did not complete in {:.1f} s ({}): it {}", rank(),
                       calls_.describe(request.exchange().op()), static_cast<double>(limits.timeout_ns) / 1e9,
                       limits.timeout_origin, request.exchange().describe_wait()));
  } else if (now - request.probed_at > limits.stall_ns) {
    request.probed_at = now;
    request.exchange().ask_awaited();
    health_.check_own_line();
    if (health_.good() && request.exchange().polls_memory()) find_failed_local(request);
  }
}

// A rank whose team has failed reports that in the node window as well; it may never read another note.
void Team::find_failed_local(Request& request) noexcept {
  for (int local = 0; local < window_->size(); ++local) {
    const int status = window_->presence().failure_of(local);
    if (local == window_->rank() || status == 0) continue;
    engine_.take_from_memory();
    if (!request.in_flight() || !health_.good()) return;
    return health_.suspect(error(static_cast<ibcoll_status_t>(status),
                                 "rank {}: {} cannot complete: rank {} of the job ended it with an error", rank(),
                                 calls_.describe(request.exchange().op()), window_->job_rank(local)));
  }
}

// Ends in what ibcoll_run reads (tools/ibcoll_run/late_ranks.h), in ranks of the job.
std::string Team::describe() const {
  std::string text;
  calls_.for_each([&](Request& request) {
    std::string awaited;
    auto add = [&](int rank) { awaited += fmt::format("{}{}", awaited.empty() ? "" : ",", members_.job_rank(rank)); };
    request.exchange().awaited([](void* to, int rank) { (*static_cast<decltype(add)*>(to))(rank); }, &add);
    const Time seen = request.seen_at;
    const uint32_t op = request.exchange().op();
    const double seconds = seen == 0 ? 0 : static_cast<double>(engine_.now() - seen) / 1e9;
    text += fmt::format(
        "rank {}: {} {} [call of team {} ({} ranks, the first is {}) #{} by rank {} for {:.1f} s, awaits {}]\n", rank(),
        calls_.describe(op), request.exchange().describe_wait(), members_.number(), size(), members_.job_rank(0), op,
        members_.job_rank(rank()), seconds, awaited);
  });
  return text;
}

}  // namespace ibcoll
