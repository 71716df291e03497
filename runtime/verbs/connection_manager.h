// SPDX-License-Identifier: BSD-3-Clause
// How ranks exchange what a connection needs before they are connected (IBCOLL_VERBS_CONNECT): by datagrams
// (greetings.h), or by the messages of librdmacm (rdmacm.h). Either may lose, repeat or reorder greetings: the sender
// repeats a greeting until it is answered.
#pragma once

#include <infiniband/verbs.h>

#include <vector>

#include "runtime/base/status.h"
#include "runtime/verbs/wire.h"

namespace ibcoll::verbs {

class ConnectionManager {
 public:
  virtual ~ConnectionManager() = default;
  virtual const char* name() const = 0;
  // The delay that a lost greeting costs, in nanoseconds.
  virtual Time delay_of_loss() const = 0;
  // Fills in where greetings reach this rank.
  virtual void fill_in_address(Address& own) const = 0;
  // Sets where each rank can be reached. Nothing is sent yet.
  virtual void set_addresses(std::vector<Address> by_rank) = 0;
  // Best effort. An error: this greeting, or with rdmacm the one before, could not leave; the device or call, why, and
  // what to try. An address at which no host answers may block the caller for a second.
  virtual Status send(int to, const Greeting& greeting) = 0;
  // False: the send queue is full, and one more would be lost. receive() notices those that have left.
  virtual bool has_room() const { return true; }
  // The next one that has arrived; false: none. Never blocks.
  virtual bool receive(Greeting& greeting) = 0;
  // The path to the sender of a greeting that was received: ah_attr and path_mtu of `attributes`. TRANSPORT: the
  // greeting is out of date, its sender begins anew.
  virtual Status find_path(const Greeting& theirs, ibv_qp_attr& attributes) = 0;
};

}  // namespace ibcoll::verbs
