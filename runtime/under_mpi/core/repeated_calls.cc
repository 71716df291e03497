// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/core/repeated_calls.h"

#include <new>

#include "runtime/under_mpi/core/datatype.h"
#include "runtime/under_mpi/core/operation.h"
#include "runtime/under_mpi/core/prepared.h"

namespace ibcoll::under_mpi {

namespace {

// Another type may get the handle of one that is freed. A side without a type has no elements.
bool lasts(MPI_Datatype handle) noexcept {
  if (handle == MPI_DATATYPE_NULL) return true;
  const Type* const type = find_type(handle);
  return type != nullptr && type->predefined && type->true_lb == 0;
}

bool has_arrays(const Call& call) noexcept {
  return call.send.counts.given() || call.recv.counts.given() || call.send.types != nullptr;
}

}  // namespace

void RepeatedCalls::keep(const Call& call, const Prepared& prepared, AlgorithmCount* algorithm) noexcept {
  if (has_arrays(call) || prepared.staged() || prepared.args.op_call != nullptr || !lasts(call.send.type) ||
      !lasts(call.recv.type) || (call.op != MPI_OP_NULL && !is_predefined(call.op)))
    return;
  const ibcoll_collective_args_t& args = prepared.args;
  const bool sends = args.send != nullptr && args.send == call.send.buffer;
  const bool receives = args.recv != nullptr && args.recv == call.recv.buffer;
  if (!slots_) slots_.reset(new (std::nothrow) std::array<Slot, kSlots>);
  if (!slots_) return;
  (*slots_)[slot_of(call)] = {Key(call), sends, receives, {args, prepared.bytes, algorithm}};
}

}  // namespace ibcoll::under_mpi
