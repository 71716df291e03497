// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/rank_places.h"

#include <fmt/format.h>

#include <algorithm>

namespace ibcoll::run {

std::string RankPlaces::too_far_ahead(uint32_t rank) const {
  const int next = places_[rank].next_series;
  if (next < kMostAhead) return {};
  const auto last = std::min_element(places_.begin(), places_.end(), [](const Place& one, const Place& other) {
    return one.next_series < other.next_series;
  });
  if (next - last->next_series < kMostAhead) return {};
  return fmt::format("rank {} is {} contexts ahead of rank {}; do all ranks create the same ones?", rank, kMostAhead,
                     last - places_.begin());
}

int RankPlaces::take(uint32_t rank, uint64_t process) {
  Place& place = places_[rank];
  place.process = process;
  ++place.connections;
  return place.next_series++;
}

}  // namespace ibcoll::run
