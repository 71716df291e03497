// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/core/prepared.h"

#include <utility>

#include "runtime/under_mpi/core/builder.h"
#include "runtime/under_mpi/core/per_thread.h"

namespace ibcoll::under_mpi {

namespace {

const PerThread<std::unique_ptr<Arrays>> kept_arrays;

bool uses_arrays(Collective collective) noexcept {
  switch (collective) {
    case Collective::kAllgatherv:
    case Collective::kAlltoallv:
    case Collective::kAlltoallw:
    case Collective::kGatherv:
    case Collective::kScatterv:
    case Collective::kReduceScatter:
      return true;
    default:
      return false;
  }
}

}  // namespace

Reason Prepared::prepare(const Communicator& comm, const Call& call) {
  if (uses_arrays(call.collective) && !arrays) {
    if (std::unique_ptr<Arrays>* const kept = kept_arrays.get()) arrays = std::move(*kept);
    if (!arrays) arrays = std::make_unique<Arrays>();
  }
  args.struct_size = sizeof args;
  args.collective =
      call.collective == Collective::kAlltoallw ? IBCOLL_ALLTOALLV : static_cast<ibcoll_collective_t>(call.collective);
  return Builder(comm, call, *this).build();
}

Prepared::~Prepared() {
  if (!arrays) return;
  if (std::unique_ptr<Arrays>* const kept = kept_arrays.get()) *kept = std::move(arrays);
}

void Prepared::unpack_all() const {
  for (const Unpacked& one : unpacked) unpack(one.packed, one.buffer, one.count, *one.type);
}

void Prepared::abandon() noexcept {
  send_stage.abandon();
  recv_stage.abandon();
}

}  // namespace ibcoll::under_mpi
