// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ibcoll::run {

// Which process speaks for each rank, and in which series of exchanges its next bootstrap takes part.
class RankPlaces {
 public:
  // Contexts that a rank may create, or try to, before the last one has come to its first.
  static constexpr int kMostAhead = 64;

  explicit RankPlaces(size_t ranks) : places_(ranks) {}

  // Another process has connections as that rank. It may be on its way out.
  bool held_by_other(uint32_t rank, uint64_t process) const {
    return places_[rank].connections > 0 && places_[rank].process != process;
  }
  // Why the rank gets no further series; "": it may have one.
  std::string too_far_ahead(uint32_t rank) const;
  // Returns the series.
  int take(uint32_t rank, uint64_t process);
  void leave(int rank) { --places_[static_cast<size_t>(rank)].connections; }

 private:
  struct Place {
    uint64_t process = 0;
    int connections = 0;
    int next_series = 0;
  };
  std::vector<Place> places_;
};

}  // namespace ibcoll::run
