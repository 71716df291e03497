// SPDX-License-Identifier: BSD-3-Clause
// Random arguments of collectives.
#include <algorithm>

#include "tests/simulated/collective_case.h"
#include "tools/oracle/elements.h"

namespace ibcoll {
namespace {

uint64_t random_bytes(sim::Random& random, uint64_t most, const std::vector<uint64_t>& edges) {
  const uint64_t kind = random.below(6);
  if (kind == 0) return random.below(3);
  if (kind == 1) return random.below(std::min<uint64_t>(most, 64) + 1);
  if (kind <= 3 && !edges.empty()) {
    const uint64_t edge = edges[random.below(edges.size())] + random.below(3);
    if (edge >= 1 && edge - 1 <= most) return edge - 1;
  }
  return random.below(most + 1);
}

void choose_reduction(sim::Random& random, CallParams& params, uint64_t bytes) {
  params.type = static_cast<ibcoll_type_t>(random.below(IBCOLL_OPAQUE + 1));
  do params.op = oracle::operation(static_cast<int>(random.below(oracle::kOperations)));
  while (!oracle::has(params.type, params.op));
  if (random.one_in(3)) {
    const bool sealed = random.one_in(2);
    params.type = sealed ? IBCOLL_OPAQUE : IBCOLL_UINT64;
    params.op = sealed ? oracle::sealed_composition() : oracle::composition();
  }
  if (params.type == IBCOLL_OPAQUE)
    params.opaque_bytes = params.op == IBCOLL_REPLACE ? 1 + random.below(40) : oracle::kSealedBytes;
  params.count = bytes / params.element_bytes();
}

// Symmetric where the exchange is in place; whole elements of what is reduced.
void choose_counts(sim::Random& random, CallParams& params, uint64_t most, const std::vector<uint64_t>& edges) {
  const size_t p = static_cast<size_t>(params.p);
  const uint64_t zeros = 1 + random.below(5);  // one in `zeros` blocks is empty, or all
  const uint64_t unit = params.row().reduces() ? params.element_bytes() : 1;
  const auto size = [&] { return random.one_in(zeros) ? 0 : random_bytes(random, most, edges) / unit * unit; };
  if (params.row().sizes != SizesKnown::kToPairs) {
    for (size_t i = 0; i < p; ++i) params.counts.push_back(size());
    return;
  }
  params.counts.resize(p * p);
  for (size_t i = 0; i < p; ++i)
    for (size_t j = 0; j < p; ++j)
      params.counts[i * p + j] = params.in_place && j < i ? params.counts[j * p + i] : size();
}

}  // namespace

CallParams random_case(sim::Random& random, ibcoll_collective_t collective, int p, uint64_t most,
                       const std::vector<uint64_t>& edges) {
  CallParams params;
  params.collective = collective;
  params.p = p;
  params.gaps = 8;
  const Collective& row = params.row();
  params.scheme = static_cast<ibcoll_scheme_t>(random.below(3));
  params.in_place = row.moves_data() && random.one_in(3);
  const uint64_t bytes = random_bytes(random, most, edges);
  if (row.rooted) params.root = static_cast<int>(random.below(static_cast<uint64_t>(p)));
  if (row.reduces()) choose_reduction(random, params, bytes);
  if (row.moves_data() && !row.irregular() && !row.reduces()) params.bytes = bytes;
  if (row.irregular()) choose_counts(random, params, most, edges);
  return params;
}

}  // namespace ibcoll
