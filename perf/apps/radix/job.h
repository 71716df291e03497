// SPDX-License-Identifier: BSD-3-Clause
// The ranks of the program as one: the ibcoll context and the few agreements that file handling needs.
#pragma once

#include <cstdint>
#include <string>

#include "ibcoll.h"

namespace radix {

// What went wrong, for the user; empty: nothing.
using Error = std::string;

// Text of a failed ibcoll call; empty for IBCOLL_OK.
Error check(ibcoll_status_t status, const char* what);

class Job {
 public:
  Job() = default;
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  Error open();
  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  ibcoll_team_t team() const noexcept { return team_; }

  // Collective. True on all ranks when no rank has an error. Otherwise false on all: the lowest rank that has one
  // prints it, so that a missing file is told once and not by each rank. A rank that cannot ask the others any more
  // prints that.
  bool agree(const Error& mine);
  // Collective. The largest of all ranks' values; 0 when the others cannot be asked.
  double largest(double value);
  // Collective. Rank 0's bytes, on all ranks.
  Error from_rank_0(void* bytes, uint64_t count);

 private:
  ibcoll_context_t context_ = nullptr;
  ibcoll_team_t team_ = nullptr;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace radix
