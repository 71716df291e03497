// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/team_links.h"

#include <new>

namespace ibcoll {

void TeamLinks::lack_memory(int peer) noexcept {
  health_.fail(error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory to send to rank {}", members_.rank(), peer));
}

PutResult TeamLinks::put(PeerLink& link, const RemoteRegion& to, ConstBytes from, const Note& note,
                         uint64_t token) noexcept {
  PutResult result = PutResult::kBusy;
  try {
    result = link.transport->put(link.job, to, from, note, token);
  } catch (const std::bad_alloc&) {
    health_.fail(error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory to write to rank {}", members_.rank(), link.peer));
  }
  if (result != PutResult::kBusy) note_left(link);
  return result;
}

RemoteRegion TeamLinks::expose(int peer, Bytes memory) noexcept {
  try {
    return transport(peer).expose_with_next(members_.job_rank(peer), memory);
  } catch (const std::bad_alloc&) {
    return {};
  }
}

bool TeamLinks::conceal(int peer, const RemoteRegion& region) noexcept {
  try {
    return transport(peer).conceal(members_.job_rank(peer), region);
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bool TeamLinks::rest(int peer, const RemoteRegion& region) noexcept {
  try {
    return transport(peer).rest(members_.job_rank(peer), region);
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void TeamLinks::want_back() noexcept {
  for (int i = 0; i < members_.size(); ++i)
    if (i != members_.rank()) transport(i).want_back(members_.job_rank(i));
}

bool TeamLinks::reaches(int peer) noexcept {
  const int job = members_.job_rank(peer);
  return engine_.lost().reaches(job) && (connects_ || is_connected(peer));
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
