// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/ended_ranks.h"

#include <new>
#include <utility>

namespace ibcoll {

// The news may overtake the last messages of the rank, with which a collective is complete. So it waits for them a
// little, unless the transport has reported the failure already: then it only says more.
void EndedRanks::look() noexcept {
  constexpr Time kOnTheWay = 50'000'000;
  try {
    for (Bootstrap::Ended& one : bootstrap_.ended()) news_.push_back({one.rank, std::move(one.how), engine_.now()});
  } catch (const std::bad_alloc&) {  // the transports notice by themselves, if later
  }
  std::erase_if(news_, [&](const News& one) {
    if (!engine_.dead(one.rank) && engine_.now() - one.at < kOnTheWay) return false;
    engine_.peer_ended(one.rank, one.how);
    return true;
  });
}

}  // namespace ibcoll
