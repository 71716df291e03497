// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/ended_ranks.h"

#include <new>
#include <utility>

namespace ibcoll {

void EndedRanks::take() noexcept {
  try {
    for (Bootstrap::Ended& one : bootstrap_.ended()) reports_.push_back({one.rank, std::move(one.how), engine_.now()});
  } catch (const std::bad_alloc&) {  // the transports notice it as well, only later
  }
}

// A report may overtake the last messages of its rank, which may complete a collective. So it is applied after a delay,
// unless the transport has reported the failure already: then it only adds the cause.
void EndedRanks::poll() noexcept {
  constexpr Time kDelayNs = 50'000'000;
  take();
  std::erase_if(reports_, [&](const Report& one) {
    if (!engine_.lost().dead(one.rank) && engine_.now() - one.at < kDelayNs) return false;
    engine_.peer_ended(one.rank, one.how);
    return true;
  });
}

void EndedRanks::apply(const std::vector<bool>& ranks) noexcept {
  take();
  std::erase_if(reports_, [&](const Report& one) {
    const bool applies = ranks[static_cast<size_t>(one.rank)];
    if (applies) engine_.peer_ended(one.rank, one.how);
    return applies;
  });
}

}  // namespace ibcoll
