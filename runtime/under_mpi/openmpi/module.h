// SPDX-License-Identifier: BSD-3-Clause
// The component's module of one communicator.
#pragma once

#include <new>

#include "runtime/under_mpi/core/communicator.h"
#include "runtime/under_mpi/openmpi/open_mpi.h"

namespace ibcoll::open_mpi {

// One collective of Open MPI in one form: its members in the table of a communicator and in a module.
template <auto TableFunction, auto TableModule, auto ModuleFunction>
struct Slot {
  static constexpr auto kFunction = TableFunction;
  static constexpr auto kModule = TableModule;
  static constexpr auto kOurs = ModuleFunction;
};

// The language cannot compose names of members.
#define IBCOLL_SLOT(name) Slot<&Table::coll_##name, &Table::coll_##name##_module, &mca_coll_base_module_t::coll_##name>

// Open MPI makes it as an object of its own kind: see module.cc.
struct Module {
  mca_coll_base_module_t super;
  Table previous;  // what each slot would run without the component; the modules are retained
  ompi_communicator_t* comm;
  alignas(under_mpi::Communicator) unsigned char storage[sizeof(under_mpi::Communicator)];
  bool enabled;  // there is a communicator in `storage`

  under_mpi::Communicator& communicator() { return *std::launder(reinterpret_cast<under_mpi::Communicator*>(storage)); }

  template <class Slot, class Function>
  void take(const Table& table, Function* function) {
    if (table.*Slot::kFunction == nullptr || table.*Slot::kModule == nullptr) return;
    previous.*Slot::kFunction = table.*Slot::kFunction;
    previous.*Slot::kModule = table.*Slot::kModule;
    OBJ_RETAIN(table.*Slot::kModule);
    super.*Slot::kOurs = function;
  }
  template <class Slot>
  void give_back() {
    if (previous.*Slot::kModule != nullptr) OBJ_RELEASE(previous.*Slot::kModule);
  }
  template <class Slot, class... Arguments>
  int run_previous(Arguments... arguments) {
    return (previous.*Slot::kFunction)(arguments..., previous.*Slot::kModule);
  }
};

inline Module& module_of(mca_coll_base_module_t* base) { return *reinterpret_cast<Module*>(base); }

// While it lives, blocking collectives of this thread go to Open MPI: its algorithms are made of other collectives, on
// the same communicator or on parts of it. Nonblocking ones do not: they may come from inside of Open MPI's progress at
// different times on different ranks, and all ranks must find the same.
class InsideOpenMpi {
 public:
  InsideOpenMpi() { ++depth_; }
  ~InsideOpenMpi() { --depth_; }
  InsideOpenMpi(const InsideOpenMpi&) = delete;
  InsideOpenMpi& operator=(const InsideOpenMpi&) = delete;
  static bool now() { return depth_ != 0; }

 private:
  static thread_local int depth_;
};

// For comm_query: a new module, or NULL where the communicator cannot be served.
mca_coll_base_module_t* query(ompi_communicator_t* comm, int* priority);

}  // namespace ibcoll::open_mpi
