// SPDX-License-Identifier: BSD-3-Clause
// Random arguments of collectives.
#include <algorithm>

#include "tests/simulated/collective_case.h"

namespace ibcoll {
namespace {

// Composition of x -> a x + b (mod 2^32), packed in 64 bits: associative and not commutative. `in` is of the lower
// ranks, so it is applied first.
void compose(const void* in, void* inout, uint64_t count, ibcoll_type_t, void*) {
  const auto* const first = static_cast<const uint64_t*>(in);
  auto* const second = static_cast<uint64_t*>(inout);
  for (uint64_t i = 0; i < count; ++i) {
    const uint32_t a1 = static_cast<uint32_t>(first[i] >> 32), b1 = static_cast<uint32_t>(first[i]);
    const uint32_t a2 = static_cast<uint32_t>(second[i] >> 32), b2 = static_cast<uint32_t>(second[i]);
    second[i] = static_cast<uint64_t>(a1 * a2) << 32 | static_cast<uint32_t>(a2 * b1 + b2);
  }
}

ibcoll_op composition{"composition", false, -1, compose, nullptr};

uint64_t random_bytes(SimRandom& random, uint64_t most, const std::vector<uint64_t>& edges) {
  const uint64_t kind = random.below(6);
  if (kind == 0) return random.below(3);
  if (kind == 1) return random.below(std::min<uint64_t>(most, 64) + 1);
  if (kind <= 3 && !edges.empty()) {
    const uint64_t edge = edges[random.below(edges.size())] + random.below(3);
    if (edge >= 1 && edge - 1 <= most) return edge - 1;
  }
  return random.below(most + 1);
}

void choose_reduction(SimRandom& random, CaseParams& params, uint64_t bytes) {
  const ibcoll_op_t all[] = {IBCOLL_SUM, IBCOLL_PROD, IBCOLL_MIN,  IBCOLL_MAX, IBCOLL_BAND,
                             IBCOLL_BOR, IBCOLL_BXOR, IBCOLL_LAND, IBCOLL_LOR, IBCOLL_LXOR};
  params.type = static_cast<ibcoll_type_t>(random.below(IBCOLL_TYPE_COUNT));
  params.op = all[random.below(std::size(all))];
  if (!reduce_kernel(params.op, params.type)) params.op = IBCOLL_SUM;
  if (random.one_in(3)) {
    params.type = IBCOLL_UINT64;
    params.op = &composition;
  }
  params.count = bytes / type_bytes(params.type);
}

// Symmetric where the exchange is in place.
void choose_counts(SimRandom& random, CaseParams& params, uint64_t most, const std::vector<uint64_t>& edges) {
  const size_t p = static_cast<size_t>(params.p);
  const uint64_t zeros = 1 + random.below(5);  // one in so many blocks is empty, or all
  const auto size = [&] { return random.one_in(zeros) ? 0 : random_bytes(random, most, edges); };
  if (params.collective == IBCOLL_ALLGATHERV) {
    for (size_t i = 0; i < p; ++i) params.counts.push_back(size());
  } else if (params.collective == IBCOLL_ALLTOALLV) {
    params.counts.resize(p * p);
    for (size_t i = 0; i < p; ++i) {
      for (size_t j = 0; j < p; ++j) {
        params.counts[i * p + j] = params.in_place && j < i ? params.counts[j * p + i] : size();
      }
    }
  }
}

}  // namespace

CaseParams random_case(SimRandom& random, ibcoll_collective_t collective, int p, uint64_t most,
                       const std::vector<uint64_t>& edges) {
  CaseParams params;
  params.collective = collective;
  params.p = p;
  params.scheme = static_cast<ibcoll_scheme_t>(random.below(3));
  const bool has_send = collective != IBCOLL_BARRIER && collective != IBCOLL_BCAST;
  params.in_place = has_send && random.one_in(3);
  const uint64_t bytes = random_bytes(random, most, edges);
  if (collective == IBCOLL_BCAST) params.root = static_cast<int>(random.below(static_cast<uint64_t>(p)));
  if (collective == IBCOLL_BCAST || collective == IBCOLL_ALLGATHER || collective == IBCOLL_ALLTOALL) {
    params.bytes = bytes;
  }
  if (collective == IBCOLL_ALLREDUCE) choose_reduction(random, params, bytes);
  choose_counts(random, params, most, edges);
  return params;
}

}  // namespace ibcoll
