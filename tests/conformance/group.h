// SPDX-License-Identifier: BSD-3-Clause
// Ranks of one transport within this process, each with its own instance, polled one after the other by one thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/transport/transport.h"

namespace ibcoll::conformance {

class Group {
 public:
  virtual ~Group() = default;
  virtual int size() const = 0;
  virtual Transport& at(int rank) = 0;
  // Nothing happened in a round of polls: lets time pass (virtual time in the simulator).
  virtual void idle() = 0;
  // Ends the transport of one rank; at() has it no more. False: the ranks of this group only end together.
  virtual bool leave(int /*rank*/) { return false; }
  // Rank 0 of another job of as many ranks, which takes this group's ranks for its own, as when addresses are used
  // again. nullptr: ranks of two jobs never meet there.
  virtual std::unique_ptr<Transport> make_stranger() { return nullptr; }
  // Ranks may be used by different threads.
  virtual bool threads() const { return true; }
};

struct Maker {
  std::string name;
  std::function<std::unique_ptr<Group>(int size, uint64_t seed)> make;
};
// Printed by GoogleTest with each test.
std::ostream& operator<<(std::ostream& out, const Maker& maker);

// All transports of this build; the name says which and how it is set up: ucx_tcp, ucx_shared_memory, shm, sim, ...
const std::vector<Maker>& makers();

// One file per transport adds its makers.
void add_ucx_makers(std::vector<Maker>& makers);
void add_sim_makers(std::vector<Maker>& makers);
void add_shm_makers(std::vector<Maker>& makers);
bool machine_has_rdma();
bool machine_has_rdmacm();
// None on a machine without an RDMA device: tests/vm brings one.
void add_verbs_makers(std::vector<Maker>& makers);

}  // namespace ibcoll::conformance
