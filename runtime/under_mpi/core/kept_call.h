// SPDX-License-Identifier: BSD-3-Clause
// The copy of the program's arguments that a nonblocking or persistent call keeps.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "runtime/under_mpi/core/call.h"

namespace ibcoll::under_mpi {

// A copy of a call with all that it points to, buffers aside.
class KeptCall {
 public:
  KeptCall(const Call& call, int rank, int size);
  KeptCall(const KeptCall&) = delete;
  KeptCall& operator=(const KeptCall&) = delete;
  const Call& call() const noexcept { return call_; }

 private:
  struct Arrays {
    std::vector<int> narrow;
    std::vector<int64_t> wide;
    Numbers copy(Numbers numbers, int size);
  };
  void keep(Side& side, int size, Arrays& counts, Arrays& displacements, std::vector<MPI_Datatype>& types);

  Call call_;
  Arrays send_counts_, send_displacements_, recv_counts_, recv_displacements_;
  std::vector<MPI_Datatype> send_types_, recv_types_;
};

// Derived types and operations of a call, retained by the route while this lives.
class Uses {
 public:
  Uses(const Call& call, int rank, int size);
  ~Uses();
  Uses(const Uses&) = delete;
  Uses& operator=(const Uses&) = delete;

 private:
  void use(const Side& side, int size);
  void use(MPI_Datatype type);

  std::vector<MPI_Datatype> types_;
  MPI_Op op_ = MPI_OP_NULL;
};

}  // namespace ibcoll::under_mpi
