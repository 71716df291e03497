// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/team_links.h"

#include <new>

namespace ibcoll {

bool TeamLinks::send(int peer, const Note& note, ConstBytes payload) noexcept {
  try {
    if (!transport(peer).send(members_.job_rank(peer), note, payload)) return false;
  } catch (const std::bad_alloc&) {
    health_.fail(error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory to send to rank {}", members_.rank(), peer));
    return false;
  }
  credit_.note_left(peer, calls_.completed());
  return true;
}

PutResult TeamLinks::put(int peer, const RemoteRegion& to, ConstBytes from, const Note& note, uint64_t token) noexcept {
  PutResult result = PutResult::kBusy;
  try {
    result = transport(peer).put(members_.job_rank(peer), to, from, note, token);
  } catch (const std::bad_alloc&) {
    health_.fail(error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory to write to rank {}", members_.rank(), peer));
  }
  if (result != PutResult::kBusy) credit_.note_left(peer, calls_.completed());
  return result;
}

RemoteRegion TeamLinks::expose(int peer, Bytes memory) noexcept {
  try {
    return transport(peer).expose(members_.job_rank(peer), memory);
  } catch (const std::bad_alloc&) {
    return {};
  }
}

void TeamLinks::want_back() noexcept {
  for (int i = 0; i < members_.size(); ++i)
    if (i != members_.rank()) transport(i).want_back(members_.job_rank(i));
}

bool TeamLinks::reaches(int peer) noexcept {
  const int job = members_.job_rank(peer);
  return engine_.lost().reaches(job) && (connects_ || !transport(peer).would_connect(job));
}

void TeamLinks::ask_for_credit(int peer) noexcept {
  if (credit_.must_ask(peer) && send(peer, note(NoteKind::kCompleted, 0, 0, 0, kWantsCredit), {})) credit_.asked(peer);
}

bool TeamLinks::report_completed() noexcept {
  if (!health_.good() || parting_) return true;  // it starts no more collectives
  return credit_.return_due(calls_.completed(), [this](int peer) {
    (void)send(peer, note(NoteKind::kCompleted, 0, 0, 0, kReturnsCredit), {});
  });
}

}  // namespace ibcoll
