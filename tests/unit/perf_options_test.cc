// SPDX-License-Identifier: BSD-3-Clause
#include "perf/ibcoll_perf/options.h"

#include <gtest/gtest.h>

#include <CLI/Error.hpp>
#include <iterator>

namespace ibcoll::perf {
namespace {

using Sizes = std::vector<uint64_t>;

TEST(ParseSizes, FromMinByFactorToMaxItself) {
  EXPECT_EQ(parse_sizes("1:8", 2), (Sizes{1, 2, 4, 8}));
  EXPECT_EQ(parse_sizes("8:100", 4), (Sizes{8, 32, 100}));
  EXPECT_EQ(parse_sizes("0:2", 2), (Sizes{0, 1, 2}));
  EXPECT_EQ(parse_sizes("512K:1M", 2), (Sizes{524288, 1048576}));
  EXPECT_EQ(parse_sizes("64K", 2), (Sizes{65536}));
}

TEST(ParseSizes, RefusesWhatIsNoRange) {
  for (const char* text :
       {"", ":", "1:", ":1", "8:1", "-1:4", "1:2:3", "1.5:8", "x", "1Q", "99999999999999999999", "99999999999G"}) {
    EXPECT_THROW((void)parse_sizes(text, 2), CLI::ValidationError) << text;
  }
}

TEST(ParseSizes, LargestNumbersDoNotOverflow) {
  const Sizes sizes = parse_sizes("1:18446744073709551615", 1u << 31);
  EXPECT_EQ(sizes, (Sizes{1, 1ull << 31, 1ull << 62, UINT64_MAX}));
}

TEST(ParseOptions, SecondsAreANumberInRange) {
  for (const char* text : {"nan", "-nan", "NaN", "inf", "0", "-1", "86401", "1s", ""}) {
    const char* const words[] = {"ibcoll_perf", "barrier", "--seconds", text};
    Options options;
    const std::optional<EarlyEnd> end = parse_options(std::size(words), words, options);
    EXPECT_TRUE(end && end->exit_code == 2 && end->error_output.find("--seconds") != std::string::npos) << text;
  }
  const char* const words[] = {"ibcoll_perf", "barrier", "--seconds", "1.5"};
  Options options;
  EXPECT_FALSE(parse_options(std::size(words), words, options));
  EXPECT_EQ(options.plan.budget_us, 1.5e6);
}

}  // namespace
}  // namespace ibcoll::perf
