// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/call_questions.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <utility>

#include "runtime/engine/request.h"

namespace ibcoll {

PairBytes pair_bytes(const Args& args, int rank, int peer) noexcept {
  const Collective& row = kCatalog[args.collective];
  if (row.sizes == SizesKnown::kToPairs)
    return {args.in_place ? args.recv.size(peer) : args.send.size(peer), args.recv.size(peer)};
  if (row.sizes != SizesKnown::kToRoot) return {};
  const bool gathers = row.recv.extent == Extent::kBlocks, here = rank == args.root;
  if (!here && peer != args.root) return {};
  const uint64_t bytes = !here ? args.bytes : gathers ? args.recv.size(peer) : args.send.size(peer);
  return gathers == here ? PairBytes{0, bytes} : PairBytes{bytes, 0};
}

bool CallQuestions::send_calls(int peer, uint32_t op, Probe probe) noexcept {
  std::array<std::byte, sizeof(PairBytes) + kAskedCalls * sizeof(CallRecord)> payload;
  const Request* const request = calls_.find(op);
  const PairBytes bytes = request ? pair_bytes(request->args(), members_.rank(), peer) : PairBytes{};
  std::memcpy(payload.data(), &bytes, sizeof bytes);
  size_t used = sizeof bytes;
  // If the call is too old to be kept, the oldest calls that are kept are sent.
  const uint32_t oldest = calls_.next() - calls_.kept_records();
  const uint32_t count = probe == Probe::kAnswers ? 1 : kAskedCalls;
  const uint32_t last = is_after(oldest, op) ? oldest + count - 1 : op;
  for (uint32_t before = count; before-- > 0;) {
    const CallRecord call = calls_.record(last - before);
    if (call.op == 0) continue;
    std::memcpy(payload.data() + used, &call, sizeof call);
    used += sizeof call;
  }
  return links_.send(peer, links_.note(NoteKind::kProbe, used, op, 0, static_cast<uint16_t>(probe)),
                     std::span(payload).first(used));
}

std::string CallQuestions::not_kept(uint32_t op) const noexcept {
  return text_or("", [&] {
    return fmt::format(" (collective #{} seems to differ, too: of the last {} records are kept)", op,
                       calls_.kept_records());
  });
}

// The first call that differs explains whatever has gone wrong in it, or since.
bool CallQuestions::find_other_call(int peer, ConstBytes records, Probe probe, uint32_t asked_op) noexcept {
  for (CallRecord theirs; records.size() >= sizeof theirs; records = records.subspan(sizeof theirs)) {
    std::memcpy(&theirs, records.data(), sizeof theirs);
    const CallRecord mine = calls_.record(theirs.op);
    if (mine.op == 0 || mine.signature == theirs.signature) continue;
    // The call that one of the two ranks has asked about is older than all that one of them has kept.
    const bool answers = probe == Probe::kAnswers, asked = !answers || peer == suspected_peer_;
    const uint32_t suspected = answers ? suspected_op_ : asked_op;
    if (!health_.failure().explained())
      health_.explain(error(IBCOLL_ERR_MISMATCH, "rank {} calls {}, but rank {} calls {}{}; {}", peer,
                            call_text(theirs), members_.rank(), call_text(mine),
                            asked && is_after(theirs.op, suspected) ? not_kept(suspected) : std::string(), kSameCalls),
                      theirs.op);
    if (answers) return true;
    answer_to_ = peer;
    answer_op_ = theirs.op;
    answer();
    return true;
  }
  return false;
}

void CallQuestions::on_probe(int peer, const Note& note, ConstBytes payload) noexcept {
  if (payload.size() < sizeof(PairBytes)) return;
  health_.check_own_line();
  const auto probe = static_cast<Probe>(note.index);
  if (find_other_call(peer, payload.subspan(sizeof(PairBytes)), probe, note.op)) return;
  if (probe == Probe::kAnswers) return note_missing_record(peer);
  if (probe == Probe::kSuspects) {
    if (!calls_.begun(note.op) || calls_.record(note.op).op != 0) return;
    answer_to_ = peer;
    answer_op_ = note.op;
    return answer();
  }
  if (!health_.good()) return;
  if (const Request* const request = calls_.find(note.op))
    compare_bytes(peer, *request, payload);
  else if (calls_.begun(note.op))
    (void)links_.send(peer, links_.note(NoteKind::kEnded, 0, note.op, note.signature, 0), {});
}

// The peer's answer has no call that this rank has made otherwise: the peer is so far ahead that it has no record of the
// suspected one.
void CallQuestions::note_missing_record(int peer) noexcept {
  const TeamFailure& failure = health_.failure();
  if (failure.state() != TeamFailure::State::kSuspected || failure.explained() || peer != suspected_peer_) return;
  health_.explain(
      error(failure.status().code(), "{}; rank {} is so far ahead that it has no record of its collective #{}",
            failure.status().text(), peer, suspected_op_),
      suspected_op_);
}

void CallQuestions::compare_bytes(int peer, const Request& request, ConstBytes payload) noexcept {
  PairBytes theirs;
  std::memcpy(&theirs, payload.data(), sizeof theirs);
  const PairBytes mine = pair_bytes(request.args(), members_.rank(), peer);
  const uint32_t op = request.exchange().op();
  if (theirs.sent != mine.received)
    mismatch(peer, op, theirs.sent, mine.received, "bytes that it sends here");
  else if (theirs.received != mine.sent)
    mismatch(peer, op, theirs.received, mine.sent, "bytes that it gets from here");
}

// ---------------------------------------------------------------- under suspicion

void CallQuestions::suspect(int peer, uint32_t op, Status status) noexcept {
  if (!health_.good()) return;
  health_.suspect(std::move(status), op);
  suspected_peer_ = peer;
  suspected_op_ = op;
  ask_at_ = engine_.now();
  ask();
}

void CallQuestions::mismatch(int peer, uint32_t op, uint64_t theirs, uint64_t mine, const char* what) noexcept {
  suspect(peer, op,
          error(IBCOLL_ERR_MISMATCH, "rank {} and rank {} do not fit together in {}: {} is {} there and {} here; {}",
                members_.rank(), peer, calls_.describe(op), what, theirs, mine, kSameCalls));
}

void CallQuestions::other_call(int peer, uint32_t op) noexcept {
  suspect(peer, op,
          error(IBCOLL_ERR_MISMATCH,
                "rank {} is in {}, and rank {} in a call that differs in collective, algorithm, scheme, root, type, "
                "operation or a size that must agree; {}",
                members_.rank(), calls_.describe(op), peer, kSameCalls));
}

void CallQuestions::repeat() noexcept {
  answer();
  ask();
}

void CallQuestions::answer() noexcept {
  if (answer_to_ >= 0 && links_.reaches(answer_to_) && send_calls(answer_to_, answer_op_, Probe::kAnswers))
    answer_to_ = -1;
}

void CallQuestions::ask() noexcept {
  constexpr Time kForRoom = 5'000'000, kForAnswer = 20'000'000;
  const TeamFailure& failure = health_.failure();
  const bool asks = failure.state() == TeamFailure::State::kSuspected && !failure.explained() && suspected_peer_ >= 0;
  const Time now = engine_.now();
  if (!asks || now < ask_at_ || !links_.reaches(suspected_peer_)) return;
  ask_at_ = now + (send_calls(suspected_peer_, suspected_op_, Probe::kSuspects) ? kForAnswer : kForRoom);
}

}  // namespace ibcoll
