// SPDX-License-Identifier: BSD-3-Clause
// A call that is one exchange of short messages: each rank sends at most one to each other rank, and no message depends
// on a received one. A rank that repeats such a call sends its messages and takes those of the others without a task
// (engine/short_exchange.h). If something is unusual, the algorithm's task does the rest: its messages are the same.
#pragma once

#include <cstdint>

#include "runtime/collectives/framework/args.h"

namespace ibcoll {

// On how many ranks the calls of an algorithm are one exchange, where their messages are short; kOfRadix: on no more than
// its parameter says.
enum class AsExchange : uint8_t { kNever, kOfTwo, kOfRadix, kOfAll };

struct OneExchange {
  int first = 0, end = 0;  // the peers, team ranks from first to end - 1 but for this one; none: it is something else
  // The bytes that go to the peer; nullptr: none do.
  ConstBytes (*out)(const Args& args, int rank, int peer) = nullptr;
  // Where the message of the peer lands; nullptr: none comes. A region without an address: its bytes are not kept, but
  // `combine`, if there is one, gets them.
  Bytes (*in)(const Args& args, int rank, int peer) = nullptr;
  void (*combine)(const Args& args, int rank, const std::byte* theirs) = nullptr;
  // Does what needs no other rank; nullptr: nothing does.
  void (*own)(const Args& args, int rank) = nullptr;

  explicit operator bool() const noexcept { return first < end; }
};

// The exchange of rank `rank` of `p`, with no message of more than `most` bytes; none, if the call is something else.
OneExchange find_one_exchange(AsExchange as, const Args& args, int rank, int p, uint64_t most) noexcept;

}  // namespace ibcoll
