// SPDX-License-Identifier: BSD-3-Clause
#include "tests/simulated/collective_case.h"

#include <algorithm>

#include "runtime/collectives/framework/arguments.h"
#include "tools/oracle/elements.h"

namespace ibcoll {

CollectiveCase::CollectiveCase(CallParams params, uint64_t seed) : params_(std::move(params)) {
  params_.seed = seed;
  ranks_.reserve(static_cast<size_t>(params_.p));
  for (int rank = 0; rank < params_.p; ++rank) ranks_.emplace_back(params_, rank);
}

// As a caller would say it.
Result<Args> CollectiveCase::args(int rank) { return check_arguments(at(rank).args(), rank, params_.p); }

Shape CollectiveCase::shape() const {
  const Collective& row = params_.row();
  Shape shape;
  shape.p = params_.p;
  if (!row.irregular()) shape.bytes = params_.block_bytes(0, 0);
  if (row.send.extent == Extent::kBlocks || row.recv.extent == Extent::kBlocks)
    shape.total = shape.bytes * static_cast<uint64_t>(params_.p);
  shape.sizes_known = !row.irregular() || row.sizes == SizesKnown::kToAll;
  if (row.sizes == SizesKnown::kToAll)
    for (const uint64_t n : params_.counts) {
      shape.bytes = std::max(shape.bytes, n);
      shape.total += n;
      shape.empty_blocks += n == 0;
    }
  if (row.reduces()) {
    shape.commutative = params_.op->commutative;
    shape.element_bytes = params_.element_bytes();
  }
  return shape;
}

}  // namespace ibcoll
