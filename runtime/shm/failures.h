// SPDX-License-Identifier: BSD-3-Clause
// The ranks of the node that failed, or that this rank cannot reach, until poll() has reported them.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/status.h"

namespace ibcoll::shm {

class Failures {
 public:
  struct Failure {
    int local;
    Status why;
    ibcoll_status_t of_this_rank;  // OK: it is the peer that failed
  };

  // Each rank has one at most, and there is room for that from the start.
  explicit Failures(size_t ranks) : known_(ranks, false) {
    unreported_.reserve(ranks);
    reported_.reserve(ranks);
  }

  bool known(int local) const noexcept { return known_[static_cast<size_t>(local)]; }
  // Only the first one of a rank counts.
  void add(Failure failure) noexcept {
    if (known(failure.local)) return;
    known_[static_cast<size_t>(failure.local)] = true;
    unreported_.push_back(std::move(failure));
  }
  std::vector<Failure>& unreported() noexcept { return unreported_; }
  // Keeps the text of an event.
  std::string_view keep(Status why) noexcept {
    reported_.push_back(std::move(why));
    return reported_.back().text();
  }

 private:
  std::vector<bool> known_;
  std::vector<Failure> unreported_;
  std::vector<Status> reported_;
};

}  // namespace ibcoll::shm
