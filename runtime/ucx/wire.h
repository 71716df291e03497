// SPDX-License-Identifier: BSD-3-Clause
// The headers of the three active messages. All ranks of a job run the same build on the same kind of machine: no byte
// order, no versions; the job's number excludes other jobs.
#pragma once

#include <cstdint>

#include "runtime/transport/transport.h"

namespace ibcoll::ucx {

constexpr unsigned kMessageId = 1;
constexpr unsigned kPutId = 2;
constexpr unsigned kControlId = 3;

struct MessageHeader {
  uint64_t job = 0;
  uint32_t sender = 0;    // job rank
  uint32_t sequence = 0;  // of messages and puts from this sender to this receiver, from 0
  uint32_t consumed = 0;  // how many messages and puts of the receiver the sender has handed out: returns credit
  uint32_t zero = 0;
  Note note;
};
static_assert(sizeof(MessageHeader) == 56);

// A put is one fragment, or several with the same message.sequence, which cover it once.
struct PutHeader {
  MessageHeader message;
  uint64_t address = 0;  // where the put begins
  uint64_t key = 0;
  uint64_t total = 0;   // bytes of the put
  uint64_t offset = 0;  // of this fragment in it
};
static_assert(sizeof(PutHeader) == 88);

struct ControlHeader {
  enum class Kind : uint32_t {
    kCredit,      // only `consumed`
    kLeaving,     // the sender closes; `sequence` messages and puts were sent in all; asks for kAllReceived
    kAllReceived  // the answer to kLeaving
  };
  uint64_t job = 0;
  uint32_t sender = 0;
  uint32_t sequence = 0;
  uint32_t consumed = 0;
  Kind kind = Kind::kCredit;
};
static_assert(sizeof(ControlHeader) == 24);

}  // namespace ibcoll::ucx
