// SPDX-License-Identifier: BSD-3-Clause
// A call of MPI as arguments of ibcoll, with packed copies of what does not lie in memory as ibcoll moves it.
#pragma once

#include <ibcoll.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/under_mpi/core/block_arrays.h"
#include "runtime/under_mpi/core/call.h"
#include "runtime/under_mpi/core/communicator.h"
#include "runtime/under_mpi/core/operation.h"
#include "runtime/under_mpi/core/staging.h"

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
  bool own_moved = false;  // this rank has moved its own block already: of own_sent bytes, where own_offered fit
  uint64_t own_sent = 0, own_offered = 0;
  OperationCall operation;
  std::unique_ptr<Arrays> arrays;  // of collectives that use them

  Prepared() = default;
  ~Prepared();
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  // Fills args, which point into this object. kNone, or why the MPI has to run the call. Throws std::bad_alloc.
  Reason prepare(const Communicator& comm, const Call& call);
  // Each start has to prepare anew.
  bool staged() const noexcept { return send_stage.used() || recv_stage.used() || own_moved; }
  // After completion.
  void unpack_all() const;
  // Blocks of this rank are longer than what it offers for them.
  bool truncated() const noexcept { return own_sent > own_offered; }
  // The collective failed while ibcoll may still write to the copies.
  void abandon() noexcept;
};

}  // namespace ibcoll::under_mpi
