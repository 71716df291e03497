// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/descriptors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>

namespace ibcoll {
namespace {

// Some stay for the program, which may have counted on what there was.
TEST(DescriptorLimit, IsRaisedSoThatSomeAreLeft) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const std::filesystem::directory_iterator open("/proc/self/fd");
  const auto used = static_cast<rlim_t>(std::distance(begin(open), end(open)));
  rlimit limit = before;
  limit.rlim_cur = used + 110;
  if (limit.rlim_max < used + 200) GTEST_SKIP() << "the hard limit is " << limit.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  const Status enough = ensure_descriptors(50, "the test");
  rlimit after_enough{}, after_more{};
  ::getrlimit(RLIMIT_NOFILE, &after_enough);
  const Status more = ensure_descriptors(100, "the test");
  ::getrlimit(RLIMIT_NOFILE, &after_more);
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(enough.ok() && more.ok()) << enough.text() << more.text();
  EXPECT_EQ(after_enough.rlim_cur, used + 110) << "there was room";
  EXPECT_GE(after_more.rlim_cur, used + 120);
}

}  // namespace
}  // namespace ibcoll
