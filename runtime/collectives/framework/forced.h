// SPDX-License-Identifier: BSD-3-Clause
// The algorithms that a user demands: IBCOLL_<COLLECTIVE> or ibcoll_collective_args_t.algorithm.
//
//   NAME[:PARAMETER][:FROM..TO] [, ...]      ring    knomial:4    ring:64K..,shm    bruck:..1K,pairwise:1K..
//
// An entry with a range is for blocks of FROM up to, not including, TO bytes (either may be missing); one without is
// for all other sizes. Sizes that not all ranks know count as 0.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/collectives/framework/algorithm.h"

namespace ibcoll {

// An algorithm and its parameter (0: it has none, or its own choice).
struct Choice {
  const Algorithm* algorithm = nullptr;
  uint64_t parameter = 0;
  // "ring_pipelined:65536"
  std::string name() const;
};

struct ForcedEntry {
  Choice choice;
  uint64_t from = 0;
  uint64_t to = UINT64_MAX;  // not included; the largest size counts as included
};

// Empty: "auto". Else an error of this code: no such algorithm, a parameter that it does not take, ranges that overlap
// or leave sizes out; the text shows the grammar. `origin` names the variable or the call.
Result<std::vector<ForcedEntry>> parse_forced(ibcoll_collective_t collective, std::string_view text,
                                              std::string_view origin, ibcoll_status_t code);
// The entry for blocks of `bytes` bytes; the list is not empty.
const ForcedEntry& entry_for(const std::vector<ForcedEntry>& entries, uint64_t bytes);

}  // namespace ibcoll
