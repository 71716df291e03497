// SPDX-License-Identifier: BSD-3-Clause
// The note that notifies another rank of the failure of a team.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/base/buffer.h"
#include "runtime/base/status.h"
#include "runtime/engine/channel.h"
#include "runtime/transport/transport.h"

namespace ibcoll {

// Its index: whether the sender can notify all others, or the receiver has to pass it on.
enum class AbortReach : uint16_t { kNotifiesAll, kPassOn };

// `failed_op`: the call that failed the team; 0: not known. `dead_peer`: the rank of the team whose death is the cause;
// -1: no death is, or none is known.
inline Note abort_note(uint64_t epoch, const Status& failure, uint32_t completed, uint32_t failed_op = 0,
                       AbortReach reach = AbortReach::kNotifiesAll, int dead_peer = -1) noexcept {
  const auto code = static_cast<uint64_t>(static_cast<int64_t>(failure.code()));
  return {epoch,
          code,
          failed_op,
          static_cast<uint32_t>(dead_peer + 1),
          completed,
          static_cast<uint16_t>(NoteKind::kAbort),
          static_cast<uint16_t>(reach)};
}

inline int dead_peer_in(const Note& abort) noexcept { return static_cast<int>(abort.signature) - 1; }

// Its payload.
inline ConstBytes abort_text(const Status& failure) noexcept {
  constexpr size_t kMostText = 1024;
  return std::as_bytes(std::span(failure.text())).first(std::min(failure.text().size(), kMostText));
}

}  // namespace ibcoll
