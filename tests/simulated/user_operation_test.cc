// SPDX-License-Identifier: BSD-3-Clause
// A user's operation that throws: no error comes back, the process ends.
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

#include "runtime/collectives/framework/registry.h"
#include "tests/simulated/scenario.h"

namespace ibcoll {
namespace {

void throwing(const void*, void*, uint64_t, ibcoll_type_t, void*) { throw std::runtime_error("operation gone wrong"); }

void reduce(const Algorithm& algorithm) {
  SimJobParams params;
  params.network.ranks = 2;
  SimJob job(params);
  const int team = job.make_team({0, 1});
  ibcoll_op op{"user-defined", true, -1, throwing, nullptr};
  std::vector<uint64_t> send(4), receive(4);
  std::vector<std::unique_ptr<Request>> requests;
  for (int rank = 0; rank < 2; ++rank) {
    Args args;
    args.collective = algorithm.collective;
    args.send.base = reinterpret_cast<const std::byte*>(send.data() + 2 * rank);
    args.recv.base = reinterpret_cast<std::byte*>(receive.data() + 2 * rank);
    args.bytes = 2 * sizeof(uint64_t);
    args.count = 2;
    args.reduction = Reduction(&op, IBCOLL_UINT64);
    requests.push_back(
        std::make_unique<Request>(job.team(team, rank), args, Choice{&algorithm, 1}, IBCOLL_SCHEME_AUTO, 1));
    SimStep step;
    step.request = requests.back().get();
    job.add_step(rank, std::move(step));
  }
  (void)job.run();
}

TEST(UserOperation, ThatThrowsEndsTheProcess) {
  for (const auto& [collective, name] : {std::pair(IBCOLL_ALLREDUCE, "recursive_doubling"),
                                         std::pair(IBCOLL_REDUCE, "circulant"), std::pair(IBCOLL_SCAN, "linear")})
    // clang's coroutines end the process without the exception.
    EXPECT_DEATH(reduce(*find_algorithm(collective, name)), "operation gone wrong|terminate called") << name;
}

}  // namespace
}  // namespace ibcoll
