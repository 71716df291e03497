// SPDX-License-Identifier: BSD-3-Clause
// How the node's segment gets from its leader to the other ranks: its descriptor travels over an abstract UNIX socket.
// Every process of the machine sees the socket's name and may connect. So both ends check that the other runs as the
// same user, and a rank sends a number that only the job's ranks know, before it gets the descriptor. Callers that send
// nothing delay no other.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "runtime/machine/deadline.h"
#include "runtime/shm/segment.h"

namespace ibcoll::shm {

// The function that a rank calls repeatedly while it waits for others; true: it moved something. Empty: nothing.
using Meanwhile = std::function<bool()>;

// The leader: listens under `name` ...
Result<UniqueFd> offer_segment(const std::string& name, int ranks);
// ... and hands the segment to the other ranks. Only processes of the same user that know the key get it. TIMEOUT names
// those that did not come, as `ranks` does, by local rank.
Status hand_over(const Segment& segment, UniqueFd offer, uint64_t key, std::span<const int> ranks, Deadline deadline,
                 const Meanwhile& meanwhile = {});
// The others, once the leader has offered it. `rank`: the local one.
Result<std::unique_ptr<Segment>> receive_segment(const std::string& name, uint64_t key, int rank, int ranks,
                                                 uint64_t ring_bytes, Deadline deadline,
                                                 const Meanwhile& meanwhile = {});

}  // namespace ibcoll::shm
