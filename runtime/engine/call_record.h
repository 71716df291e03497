// SPDX-License-Identifier: BSD-3-Clause
// The record of a rank's last calls, which it sends to ranks whose calls seem to differ: so that an error names both.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/collectives/framework/args.h"
#include "runtime/collectives/framework/forced.h"

namespace ibcoll {

struct CallRecord {
  uint32_t op = 0;         // its number in the team; 0: before the first one
  uint32_t signature = 0;  // see call_signature()
  // Elements in reductions, else bytes: of a block; of all blocks where all ranks know their sizes.
  uint64_t amount = 0;
  uint64_t parameter = 0;  // of the algorithm
  int32_t root = 0;
  uint16_t algorithm : 13 = 0;  // of algorithms()
  uint16_t scheme : 2 = 0;
  uint16_t internal : 1 = 0;
  uint8_t type = 0;
  uint8_t operation = 0;  // an OpIndex; kOpCount: user-defined
};
static_assert(sizeof(CallRecord) == 32);  // it goes to other ranks as it is

// The end of an error about calls that do not match.
inline constexpr const char* kSameCalls = "all ranks must make the same calls in the same order, with sizes that agree";

CallRecord record_of(const Args& args, const Choice& choice, ibcoll_scheme_t scheme, uint32_t signature, int size);

// "allreduce (ring) #7 of 100 elements of type int64, operation sum"; no number where op is 0. The record may come from
// another rank. "a collective" where memory is short.
std::string call_text(const CallRecord& call) noexcept;

}  // namespace ibcoll
