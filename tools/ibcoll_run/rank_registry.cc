// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/rank_registry.h"

#include <fmt/format.h>

#include <algorithm>

#include "bootstrap/rendezvous_protocol.h"

namespace ibcoll::run {

std::string RankRegistry::too_far_ahead(uint32_t rank) const {
  const int next = entries_[rank].next_series;
  if (next < kMostAhead) return {};
  const auto last = std::min_element(entries_.begin(), entries_.end(), [](const Entry& one, const Entry& other) {
    return one.next_series < other.next_series;
  });
  if (next - last->next_series < kMostAhead) return {};
  return fmt::format("rank {} is {} contexts ahead of rank {}; do all ranks create the same ones?", rank, kMostAhead,
                     last - entries_.begin());
}

std::string RankRegistry::held_text(uint32_t rank, uint64_t process) const {
  const int pid = rendezvous::pid_in(process);
  if (pid == rendezvous::pid_in(entries_[rank].process)) {
    return fmt::format(
        "another copy of libibcoll in this process (pid {}) is connected to ibcoll_run; load the library from one path "
        "only (/proc/PID/maps names them)",
        pid);
  }
  return fmt::format(
      "another process is rank {} and connected to ibcoll_run; a program that a rank starts is none itself", rank);
}

int RankRegistry::join(uint32_t rank, uint64_t process) {
  Entry& entry = entries_[rank];
  entry.process = process;
  ++entry.connections;
  return entry.next_series++;
}

}  // namespace ibcoll::run
