// SPDX-License-Identifier: BSD-3-Clause
#include "perf/ibcoll_perf/plan.h"

#include "perf/call_times.h"
#include "tools/oracle/elements.h"

namespace ibcoll::perf {
namespace {

constexpr uint64_t kGaps = 9;  // where bytes are verified: blocks start at any address

}  // namespace

std::vector<uint64_t> sizes_of(const Options& options, const Collective& row) {
  if (!row.moves_data()) return {0};
  if (!row.reduces() || !options.type) return options.sizes;
  const uint64_t width = oracle::element_bytes(*options.type);
  std::vector<uint64_t> sizes;
  for (const uint64_t bytes : options.sizes) {
    const uint64_t whole = bytes % width == 0 ? bytes : bytes - bytes % width + width;
    if (sizes.empty() || sizes.back() != whole) sizes.push_back(whole);
  }
  return sizes;
}

ibcoll_type_t element_type(const Options& options, uint64_t bytes) {
  if (options.type) return *options.type;
  const ibcoll_op_t op = operation_of(options);
  switch (op == oracle::composition() ? sizeof(uint64_t) : element_width(bytes)) {
    case 1:
      return IBCOLL_UINT8;
    case 2:
      return IBCOLL_UINT16;
    case 4:
      return oracle::bitwise(op) ? IBCOLL_UINT32 : IBCOLL_FLOAT;
    default:
      return oracle::bitwise(op) || op == oracle::composition() ? IBCOLL_UINT64 : IBCOLL_DOUBLE;
  }
}

oracle::Distribution distribution_of(const Options& options) {
  return options.distribution.value_or(options.check ? oracle::Distribution::kRagged : oracle::Distribution::kMild);
}

oracle::CallParams call_params(const Options& options, const Collective& row, int ranks, uint64_t bytes) {
  oracle::CallParams params;
  params.collective = row.id;
  params.p = ranks;
  params.in_place = options.in_place;
  params.scheme = options.scheme;
  params.gaps = options.check ? kGaps : 0;
  if (row.rooted) params.root = options.root;
  uint64_t unit = 1;  // of irregular blocks
  if (row.reduces()) {
    params.type = element_type(options, bytes);
    params.op = operation_of(options);
    unit = oracle::element_bytes(params.type);
    if (!row.irregular()) params.count = bytes / unit;
  } else if (row.moves_data() && !row.irregular()) {
    params.bytes = bytes;
  }
  if (!row.irregular()) return params;
  const oracle::Distribution distribution = distribution_of(options);
  const uint64_t base = bytes / unit;
  if (row.sizes == SizesKnown::kToPairs) {
    params.sizes = [=, symmetric = options.in_place](int source, int destination) {
      return oracle::distributed_pair(distribution, base, source, destination, ranks, symmetric);
    };
  } else {
    params.sizes = [=](int rank, int) { return unit * oracle::distributed(distribution, base, rank, ranks); };
  }
  return params;
}

}  // namespace ibcoll::perf
