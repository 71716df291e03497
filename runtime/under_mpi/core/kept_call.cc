// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/core/kept_call.h"

#include "runtime/under_mpi/core/datatype.h"
#include "runtime/under_mpi/core/operation.h"
#include "runtime/under_mpi/core/route.h"

namespace ibcoll::under_mpi {

namespace {

// Whether this rank's arguments of a side mean anything: others may be garbage.
bool sends(const Call& call, int rank) noexcept {
  switch (call.collective) {
    case Collective::kBarrier:
    case Collective::kBcast:
      return false;
    case Collective::kScatter:
    case Collective::kScatterv:
      return rank == call.root;
    default:
      return call.op == MPI_OP_NULL && call.send.buffer != MPI_IN_PLACE;
  }
}

bool receives(const Call& call, int rank) noexcept {
  switch (call.collective) {
    case Collective::kBarrier:
      return false;
    case Collective::kGather:
    case Collective::kGatherv:
      return rank == call.root;
    default:
      return call.recv.buffer != MPI_IN_PLACE;
  }
}

}  // namespace

Numbers KeptCall::Arrays::copy(Numbers numbers, int size) {
  if (!numbers.given()) return numbers;
  for (int i = 0; i < size; ++i) {
    numbers.wide() ? wide.push_back(numbers[i]) : narrow.push_back(static_cast<int>(numbers[i]));
  }
  return numbers.wide() ? Numbers(wide.data()) : Numbers(narrow.data());
}

void KeptCall::keep(Side& side, int size, Arrays& counts, Arrays& displacements, std::vector<MPI_Datatype>& types) {
  side.counts = counts.copy(side.counts, size);
  side.displacements = displacements.copy(side.displacements, size);
  if (side.types == nullptr) return;
  types.assign(side.types, side.types + size);
  side.types = types.data();
}

KeptCall::KeptCall(const Call& call, int rank, int size) : call_(call) {
  if (sends(call, rank)) keep(call_.send, size, send_counts_, send_displacements_, send_types_);
  if (receives(call, rank)) keep(call_.recv, size, recv_counts_, recv_displacements_, recv_types_);
}

Uses::Uses(const Call& call, int rank, int size) {
  if (sends(call, rank)) use(call.send, size);
  if (receives(call, rank)) use(call.recv, size);
  if (call.op != MPI_OP_NULL && !is_predefined(call.op) && route().retain_op != nullptr) {
    op_ = call.op;
    route().retain_op(op_);
  }
}

Uses::~Uses() {
  for (const MPI_Datatype type : types_) route().release_type(type);
  if (op_ != MPI_OP_NULL) route().release_op(op_);
}

void Uses::use(const Side& side, int size) {
  if (side.types == nullptr) return use(side.type);
  for (int i = 0; i < size; ++i) use(side.types[i]);
}

void Uses::use(MPI_Datatype handle) {
  const Type* type = route().retain_type != nullptr ? find_type(handle) : nullptr;
  if (type == nullptr || type->predefined || (!types_.empty() && types_.back() == handle)) return;
  types_.push_back(handle);
  route().retain_type(handle);
}

}  // namespace ibcoll::under_mpi
