// SPDX-License-Identifier: BSD-3-Clause
// A bootstrap of the host program's callbacks, and what a PMI server says of nodes.
#include "bootstrap/bootstrap.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "bootstrap/pmi/pmi_bootstrap.h"

namespace ibcoll {
namespace {

// Puts the bytes of this rank where those of rank `user` belong, and nothing elsewhere.
int gather_into(void* user, const void* mine, void* all, size_t bytes) {
  std::memcpy(static_cast<std::byte*>(all) + *static_cast<size_t*>(user) * bytes, mine, bytes);
  return 0;
}

TEST(CallbackBootstrap, ThisRanksBytesComeBackInTheirPlace) {
  constexpr size_t kRanks = 3;
  const std::vector<std::byte> mine(8, std::byte{7});
  for (size_t rank = 0; rank < kRanks; ++rank)
    for (size_t index = 0; index < kRanks; ++index) {
      const ibcoll_bootstrap_t given{sizeof given, static_cast<int>(rank), kRanks, gather_into, &index, nullptr, 0};
      auto bootstrap = make_bootstrap(&given);
      ASSERT_TRUE(bootstrap.ok()) << bootstrap.status().text();
      std::vector<std::byte> all(kRanks * mine.size());
      const Status status = bootstrap.value()->allgather(mine, all);
      EXPECT_EQ(status.code(), rank == index ? IBCOLL_OK : IBCOLL_ERR_BOOTSTRAP) << rank << ", " << index;
    }
}

TEST(CallbackBootstrap, RanksAreBelowTheSize) {
  for (const auto& [rank, size] : {std::pair(-1, 2), std::pair(2, 2), std::pair(3, 2), std::pair(0, 0)}) {
    const ibcoll_bootstrap_t given{sizeof given, rank, size, gather_into, nullptr, nullptr, 0};
    EXPECT_EQ(make_bootstrap(&given).status().code(), IBCOLL_ERR_INVALID_ARGUMENT) << rank << " of " << size;
  }
}

TEST(PmiMapping, OneNodeAndSeveral) {
  for (const char* const one : {"(vector,(0,1,1))", "(vector,(0,1,16))", "(vector,(3,1,1),(3,1,2))"})
    EXPECT_TRUE(on_one_node(one)) << one;
  for (const char* const other : {"(vector,(0,2,1))", "(vector,(0,1,1),(1,1,1))", "(vector,(0,1,1),(0,2,1))", "",
                                  "(vector", "(vector,", "(vector,(0,1", "(vector,(0,1,1),(", "(matrix,(0,1,1))"})
    EXPECT_FALSE(on_one_node(other)) << other;
}

}  // namespace
}  // namespace ibcoll
