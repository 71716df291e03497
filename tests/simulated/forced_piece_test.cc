// SPDX-License-Identifier: BSD-3-Clause
// A piece that the caller forces may be longer than what a rank can write into the node window at a time.
#include <fmt/format.h>

#include "runtime/collectives/framework/pair.h"
#include "runtime/collectives/framework/registry.h"
#include "tests/simulated/one_call.h"

namespace ibcoll {
namespace {

class ForcedPiece : public ::testing::TestWithParam<const Algorithm*> {};

TEST_P(ForcedPiece, MayBeLongerThanTheWindow) {
  const Algorithm& algorithm = *GetParam();
  OneCall call;
  call.params.collective = algorithm.collective;
  const bool of_pairs = algorithm.why_not == applies_to_pairs;
  call.params.p = of_pairs ? 2 : 5;
  if (call.params.row().reduces()) call.params.op = IBCOLL_SUM, call.params.type = IBCOLL_UINT32;
  if (call.params.row().irregular())
    call.params.counts.assign(static_cast<size_t>(call.params.p), 200'000);
  else
    call.params.bytes = 200'000, call.params.count = 50'000;
  call.algorithm = algorithm.name;
  call.parameter = algorithm.parameter.most;
  call.node_of = of_pairs ? std::vector<int>{0, 0} : std::vector<int>{0, 0, 0, 1, 1};
  call.area_bytes = 1024;  // a block that is too long reaches the areas of other ranks
  run_one_call(call);      // which looks at the data
}

std::vector<const Algorithm*> with_pieces() {
  std::vector<const Algorithm*> some;
  for (const Algorithm* const a : algorithms())
    if (a->parameter.unit == Parameter::Unit::kBytes && a->uses_window) some.push_back(a);
  return some;
}

INSTANTIATE_TEST_SUITE_P(Registry, ForcedPiece, ::testing::ValuesIn(with_pieces()), [](const auto& info) {
  return fmt::format("{}_{}", ibcoll_collective_name(info.param->collective), info.param->name);
});

}  // namespace
}  // namespace ibcoll
