// SPDX-License-Identifier: BSD-3-Clause
// Which versions of UCX the workarounds are active with.
#include "runtime/ucx/workarounds/versions.h"

#include <gtest/gtest.h>
#include <ucp/api/ucp.h>

namespace ibcoll::ucx {
namespace {

TEST(UcxVersions, AWorkaroundEndsWithTheVersionThatLacksTheFault) {
  for (const Fault fault : {Fault::kFailedSend, Fault::kFailedConnect}) {
    EXPECT_TRUE(has_fault({1, 13}, fault));
    EXPECT_TRUE(has_fault({1, 15}, fault));
    EXPECT_FALSE(has_fault({1, 16}, fault));
    EXPECT_FALSE(has_fault({2, 0}, fault));
  }
  EXPECT_TRUE(has_fault({1, 14}, Fault::kMremap));
  EXPECT_FALSE(has_fault({1, 15}, Fault::kMremap));
}

TEST(UcxVersions, AFaultThatNoVersionIsKnownToLackStays) {
  for (const Fault fault : {Fault::kInheritedSockets, Fault::kStrangers, Fault::kSignals})
    EXPECT_TRUE(has_fault({99, 0}, fault));
}

TEST(UcxVersions, TheRunningOneIsWhatUcxSays) {
  Version says;
  unsigned release = 0;
  ucp_get_version(&says.major, &says.minor, &release);
  EXPECT_EQ(running_version(), says);
}

}  // namespace
}  // namespace ibcoll::ucx
