// SPDX-License-Identifier: BSD-3-Clause
// The messages under way in the simulated network.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/transport/transport.h"

namespace ibcoll::sim {

// Index into the network's pool.
using MessageId = uint32_t;

struct Message {
  enum class Kind : uint8_t { kSend, kPut, kFailure };
  // When the bytes of a put are read and written. All are within the contract; a run meets all of them.
  enum class Landing : uint8_t {
    kAtOnce,    // kDone; written before its time, as by a shared mapping
    kBuffered,  // kDone or kSent before the note is visible, as by a buffering network
    kLast       // read and written at the last moment, kSent after that, as by RDMA
  };

  Kind kind = Kind::kSend;
  Landing landing = Landing::kBuffered;
  bool reports_sent = false;  // kSent goes to the sender
  bool landed = false;
  uint8_t uses = 0;  // by the receiver, by kSent
  int from = -1;
  int to = -1;
  uint32_t pair = 0;
  Note note;
  Time left = 0;                   // when its last byte has left the sender
  std::vector<std::byte> payload;  // keeps its capacity when the message is used again
  const std::byte* source = nullptr;
  uint64_t bytes = 0;
  RemoteRegion target;
  uint64_t token = 0;
  const std::byte* nothing = nullptr;  // of a send: the payload, where it is not moved
  uint32_t depth = 0;                  // for observers
};

// Traffic in one direction between two ranks.
struct Pair {
  int from = -1;
  int to = -1;
  Time last_arrival = 0;
  uint32_t slots_used = 0;
  uint32_t puts_used = 0;
  uint32_t unread_puts = 0;    // whose note the receiver has not read
  uint32_t freed = 0;          // slots that the receiver no longer uses, and of which the sender is not notified yet
  uint32_t credits_going = 0;  // slots whose notification is under way
  bool starved = false;        // the sender was refused and waits to be woken
  bool heard = false;          // something has been delivered
  bool lost = false;           // something was lost: what follows is too
};

}  // namespace ibcoll::sim
