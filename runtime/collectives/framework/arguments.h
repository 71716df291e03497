// SPDX-License-Identifier: BSD-3-Clause
// The checks between the C interface and the algorithms.
#pragma once

#include <string_view>

#include "runtime/base/status.h"
#include "runtime/collectives/framework/args.h"
#include "runtime/collectives/framework/repeated_call.h"

namespace ibcoll {

// A call with its buffers and nothing else yet.
inline ibcoll_collective_args_t arguments_of(ibcoll_collective_t collective, const void* send, void* recv,
                                             uint64_t bytes) {
  ibcoll_collective_args_t args{};
  args.struct_size = sizeof args;
  args.collective = collective;
  args.send = send;
  args.recv = recv;
  args.bytes = bytes;
  return args;
}

// May receive blocks overlap each other? Programs let them where they know that all bring the same bytes.
enum class Overlap { kRefused, kAllowed };

// Checks what a caller asks of a team of `size` ranks and puts it into the algorithms' words. The count arrays are not
// copied. INVALID_ARGUMENT names the argument, its value and what is allowed: NULL buffers, sizes that overflow, blocks
// that overlap, a root outside of the team, an operation that its type does not have. Allocates nothing where blocks do
// not interleave. `reaches`, if not nullptr, gets which bytes of its two buffers the call reads and writes.
Result<Args> check_arguments(const ibcoll_collective_args_t& given, int rank, int size,
                             Overlap overlap = Overlap::kRefused, Reaches* reaches = nullptr);
// The same of a call that shall not run: no buffers are looked at, and counts may be NULL (`bytes` each).
Result<Args> check_without_buffers(const ibcoll_collective_args_t& given, int rank, int size);

// A digest of what must be the same on all ranks of a call; goes with every message of it.
uint32_t call_signature(const Args& args, std::string_view algorithm, ibcoll_scheme_t scheme, int size);

}  // namespace ibcoll
