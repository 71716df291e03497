// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/failure_notices.h"

#include <new>
#include <string_view>
#include <utility>

#include "runtime/engine/abort_note.h"

namespace ibcoll {

// What shared memory holds by now came before the failure.
void FailureNotices::on_abort(int peer, const Note& note, ConstBytes payload) noexcept {
  if (health_.good()) engine_.take_from_memory();
  if (!health_.failure().certain() && !keep(peer, note, payload)) learn(peer, note, payload);
}

void FailureNotices::learn(int peer, const Note& note, ConstBytes payload) noexcept {
  const auto code = static_cast<ibcoll_status_t>(static_cast<int64_t>(note.bytes));
  const std::string_view text(reinterpret_cast<const char*>(payload.data()), payload.size());
  health_.learn(error(code, "{} (reported by rank {} of the team)", text, peer), note.op,
                static_cast<AbortReach>(note.index) == AbortReach::kPassOn, dead_peer_in(note));
}

// All ranks have made the calls before the one that failed, and those that have completed them have sent all that others
// need. So they end well here, too. Of several notices the one of the first call counts.
bool FailureNotices::keep(int peer, const Note& note, ConstBytes payload) noexcept {
  if (!health_.good() || note.op == 0 || !calls_.any_before(note.op)) return false;
  if (kept_ && !is_after(kept_->note.op, note.op)) return true;
  try {
    kept_ = std::make_unique<Kept>(Kept{peer, note, std::vector(payload.begin(), payload.end()), engine_.now()});
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void FailureNotices::take_kept_in_time() noexcept {
  if (calls_.any_before(kept_->note.op) && engine_.now() - kept_->since <= engine_.limits().stall_ns) return;
  const std::unique_ptr<Kept> kept = std::move(kept_);
  if (!health_.failure().certain()) learn(kept->peer, kept->note, kept->text);
}

bool FailureNotices::send(int peer) noexcept {
  const AbortReach reach = links_.reaches_all() ? AbortReach::kNotifiesAll : AbortReach::kPassOn;
  const uint64_t epoch = links_.note(NoteKind::kAbort, 0, 0, 0, 0).epoch;
  return links_.send(peer,
                     abort_note(epoch, health_.status(), calls_.completed(), health_.failed_op(), reach,
                                health_.failure().dead_peer()),
                     abort_text(health_.status()));
}

// A rank without a connection to this one learns of a death from the launcher, if that reports it, and opens none.
void FailureNotices::send_pending() noexcept {
  const bool reported = engine_.limits().deaths_are_reported && health_.failure().dead_peer() >= 0;
  health_.failure().notify(
      [&](int peer) { return !links_.reaches(peer) || (reported && !links_.is_connected(peer)) || send(peer); });
}

}  // namespace ibcoll
