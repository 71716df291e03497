// SPDX-License-Identifier: BSD-3-Clause
// A call of MPI as arguments of ibcoll, with packed copies of what does not lie in memory as ibcoll moves it.
#pragma once

#include <ibcoll.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "bootstrap/under_mpi/core/block_arrays.h"
#include "bootstrap/under_mpi/core/call.h"
#include "bootstrap/under_mpi/core/communicator.h"
#include "bootstrap/under_mpi/core/operation.h"
#include "bootstrap/under_mpi/core/staging.h"

namespace ibcoll::under_mpi {

// For the v-forms. A thread keeps them for its next call.
struct Arrays {
  BlockArrays send, recv;
};

// Elements that are unpacked when the collective is complete.
struct Unpacked {
  const char* packed;
  void* buffer;
  int64_t count;
  const Type* type;
};

struct Prepared {
  ibcoll_collective_args_t args = {};
  uint64_t bytes = 0;  // for the counters: what the program passed in or gets, whichever is more
  Stage send_stage, recv_stage;
  std::vector<Unpacked> unpacked;
  OperationCall operation;
  std::unique_ptr<Arrays> arrays;  // of collectives that use them

  Prepared() = default;
  ~Prepared();
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  // Fills args, which point into this object. kNone, or why the MPI has to run the call. Throws std::bad_alloc.
  Reason prepare(const Communicator& comm, const Call& call);
  // Whether ibcoll works on copies.
  bool staged() const noexcept { return send_stage.used() || recv_stage.used(); }
  // After completion.
  void unpack_all() const;
  // The collective failed while ibcoll may still write to the copies.
  void abandon() noexcept;
};

}  // namespace ibcoll::under_mpi
