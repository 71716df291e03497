// SPDX-License-Identifier: BSD-3-Clause
// An observer is notified of what happens in a simulated network, to count it or to write it down.
#pragma once

#include <cstdint>

#include "runtime/sim/message.h"

namespace ibcoll::sim {

class Observer {
 public:
  virtual ~Observer() = default;
  // The sender has handed it over; `depth` may be set, and is carried to the receiver.
  virtual void posts(Message& /*message*/) {}
  // Its first byte leaves; the sender's port is busy until `free`.
  virtual void departs(const Message& /*message*/, Time /*at*/, Time /*free*/) {}
  // Its last byte is there.
  virtual void arrives(const Message& /*message*/, Time /*at*/) {}
  // The receiver's engine takes it.
  virtual void taken(const Message& /*message*/, Time /*at*/) {}
  // A rank copies or combines `bytes` bytes, up to `end`.
  virtual void works(int /*rank*/, uint64_t /*bytes*/, Time /*at*/, Time /*end*/) {}
  // A flag of the rank in its node's memory can be seen.
  virtual void shows(int /*rank*/, Time /*at*/) {}
  // A rank that waits for such flags looks at them.
  virtual void looks(int /*rank*/) {}
};

}  // namespace ibcoll::sim
